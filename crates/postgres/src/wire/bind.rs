//! The parameters of a Bind, behind its names.

use super::fields::Fields;

/// The value of the parameter of this number, from 1 on, if it is there and not NULL; `rest` is
/// what stands behind the names, or its beginning.
pub fn parameter_of_bind(rest: &[u8], number: usize) -> Option<&[u8]> {
    let mut fields = Fields(rest);
    for _ in 0..count(&mut fields)? {
        count(&mut fields)?;
    }
    let parameters = usize::from(count(&mut fields)?);
    if !(1..=parameters).contains(&number) {
        return None;
    }
    for at in 1.. {
        let length = usize::try_from(fields.int32().ok()?);
        let (value, behind) = fields.0.split_at_checked(length.unwrap_or(0))?;
        if at == number {
            return length.is_ok().then_some(value);
        }
        fields = Fields(behind);
    }
    None
}

fn count(fields: &mut Fields<'_>) -> Option<u16> {
    Some(u16::from_be_bytes([
        fields.byte().ok()?,
        fields.byte().ok()?,
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_parameter_is_found_by_its_number() {
        let bind = b"\0\x01\0\x01\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\x03xyz\0\0";
        let parameter = |number| parameter_of_bind(bind, number);
        assert_eq!(parameter(1), Some(&b"ab"[..]));
        assert_eq!(parameter(2), None, "NULL");
        assert_eq!(parameter(3), Some(&b"xyz"[..]));
        assert_eq!((parameter(0), parameter(4)), (None, None));
        assert_eq!(parameter_of_bind(&bind[..20], 3), None, "cut off");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, number in 0_usize..5) {
            let _ = parameter_of_bind(&bytes, number);
        }
    }
}
