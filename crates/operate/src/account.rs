//! The system user that a configuration names: found at the start, and become for good once what
//! needs root is done.

use sooner_config::{Misconfigured, Spanned};
use sooner_kernel::privilege::{Account, Keep, become_user};

/// The account that `key` names.
pub fn find(user: &Spanned<String>, key: &str) -> Result<Account, Misconfigured> {
    Account::find(user.get_ref()).map_err(|error| Misconfigured::at(user, key, error))
}

/// Becomes `account`, which `key` names, and keeps what `keep` says of the privileges.
pub fn adopt(
    account: &Account,
    user: &Spanned<String>,
    key: &str,
    keep: Keep,
) -> Result<(), Misconfigured> {
    become_user(account, keep).map_err(|error| Misconfigured::at(user, key, error))
}
