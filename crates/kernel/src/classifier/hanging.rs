//! Where the programs hang among those of others: before them all.

use aya::programs::links::LinkOrder;
use aya::programs::tc::{NlOptions, TcAttachOptions, TcHandle};

use super::{Classifier, ClassifierError, PROGRAMS};
use crate::device::Device;
use crate::netlink::filter::FilterName;

impl Classifier {
    /// Hangs both programs in, before those of others.
    pub(super) fn hang_in(&mut self, device: &Device) -> Result<(), ClassifierError> {
        let Some(mut clsact) = self.clsact.take() else {
            return self.hang_in_as(device, None);
        };
        let [first, second] = clsact.filters_to_try();
        let is_in = match self.hang_in_as(device, Some(first)) {
            Ok(()) => Ok(first),
            Err(_) => self.hang_in_as(device, Some(second)).map(|()| second),
        };
        let is_in = is_in.map(|filter| clsact.are_in_as(filter));
        self.clsact = Some(clsact);
        is_in
    }

    /// As links, or as filters with this name.
    fn hang_in_as(
        &mut self,
        device: &Device,
        filter: Option<FilterName>,
    ) -> Result<(), ClassifierError> {
        let mut links = Vec::new();
        for (name, direction) in PROGRAMS {
            let program = self.program(name)?;
            match program.attach_with_options(&device.name, direction, attachment(filter)) {
                Ok(link) => links.push((name, link)),
                Err(source) => {
                    for (name, link) in links {
                        self.program(name)?
                            .detach(link)
                            .map_err(|source| ClassifierError::attach(device, source))?;
                    }
                    return Err(ClassifierError::attach(device, source));
                }
            }
        }
        Ok(())
    }
}

/// As a link before all others, or as a filter with this name.
fn attachment(filter: Option<FilterName>) -> TcAttachOptions {
    match filter {
        None => TcAttachOptions::TcxOrder(LinkOrder::first()),
        Some(filter) => TcAttachOptions::Netlink(NlOptions {
            priority: filter.priority,
            handle: TcHandle::from(filter.handle),
            classid: None,
        }),
    }
}
