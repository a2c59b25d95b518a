//! TPC-C in its shape: five transactions on the data of a wholesaler with warehouses (TPC-C 5.11),
//! for databases with rows that transactions fight over.
//!
//! What differs from the rules: lines of an order go in by one statement; amounts are computed in
//! floating point and rounded when stored; the two halves of a delivery are one transaction. Two
//! deliveries at a time take different orders, so where one is taken back an older order stays
//! behind a newer one: numbers of new orders may have gaps (conditions 2 and 3).

mod fill;
mod random;
mod schema;
mod statements;
mod transactions;

use std::pin::Pin;
use std::rc::Rc;

use sooner_workload::Rng;
use tokio_postgres::Client;

use crate::kit::drawn;
use crate::{Check, DatabaseUrl, Ended, Failure, Kit, Session, Unusable, run};

pub use fill::fill;

/// How much data there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u64,
    /// Customers of a district, 3000 by the rules.
    pub customers: u64,
    /// Items, 100 000 by the rules.
    pub items: u64,
}

/// The kit for data of some scale.
#[derive(Clone, Copy, Debug)]
pub struct Tpcc(pub Scale);

/// The kinds of transactions.
pub const KINDS: &[&str] = &[
    "new_order",
    "payment",
    "order_status",
    "delivery",
    "stock_level",
];
/// How many of a hundred transactions are of each kind.
const MIX: [u64; 5] = [45, 43, 4, 4, 4];

/// A terminal: it belongs to a warehouse.
pub struct Terminal {
    warehouse: u64,
}

impl Tpcc {
    /// [`run::run`] of this kit; in a box, so that it is compiled with this crate and not with each
    /// that waits for it.
    pub fn run<'a>(
        self: Rc<Self>,
        url: &'a DatabaseUrl,
        options: &'a run::Options,
        say: &'a dyn Fn(&str),
        stop: Pin<Box<dyn Future<Output = ()> + 'a>>,
    ) -> Pin<Box<dyn Future<Output = Result<run::Measured, Unusable>> + 'a>> {
        Box::pin(run::run(self, url, options, say, stop))
    }
}

impl Kit for Tpcc {
    type User = Terminal;

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn statements(&self) -> &'static [&'static str] {
        statements::ALL
    }

    fn user(&self, number: u32, _random: &mut Rng) -> Terminal {
        let warehouse = 1 + u64::from(number) % self.0.warehouses;
        Terminal { warehouse }
    }

    fn draw(&self, _user: &mut Terminal, random: &mut Rng) -> usize {
        drawn(&MIX, random)
    }

    async fn carry_out(
        &self,
        session: &Session,
        user: &mut Terminal,
        kind: usize,
        remark: &str,
        random: &mut Rng,
    ) -> Result<Ended, Failure> {
        let mut one = transactions::Transaction {
            session,
            scale: &self.0,
            warehouse: user.warehouse,
            remark,
            random,
        };
        match kind {
            0 => one.new_order().await,
            1 => one.payment().await,
            2 => one.order_status().await,
            3 => one.delivery().await,
            _ => one.stock_level().await,
        }
    }
}

/// How many of each there are; fails where a table is not there.
async fn counts(client: &Client) -> Result<Scale, Unusable> {
    let sql = "SELECT (SELECT count(*) FROM warehouse), (SELECT max(c_id)::bigint FROM customer WHERE c_w_id = 1 AND c_d_id = 1), (SELECT count(*) FROM item)";
    let row = client.query_one(sql, &[]).await;
    let row = row.map_err(|error| Unusable::unfilled(error, "tpcc"))?;
    let (warehouses, customers, items): (i64, Option<i64>, i64) =
        (row.get(0), row.get(1), row.get(2));
    Ok(Scale {
        warehouses: warehouses as u64,
        customers: customers.unwrap_or(0) as u64,
        items: items as u64,
    })
}

/// The scale of the data that is there.
pub async fn scale_of(client: &Client) -> Result<Scale, Unusable> {
    let scale = counts(client).await?;
    match scale {
        Scale { warehouses: 0, .. } => Err(Unusable::empty("warehouses", "tpcc")),
        Scale { customers: 0, .. } => Err(Unusable::empty("customers", "tpcc")),
        Scale { items: 0, .. } => Err(Unusable::empty("items", "tpcc")),
        _ => Ok(scale),
    }
}

/// Whether the data is as it must be.
pub async fn check(client: &Client) -> Result<Vec<Check>, Unusable> {
    counts(client).await?;
    Check::all(client, schema::CHECKS).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_mixed_as_the_rules_have_it() {
        let scale = Scale {
            warehouses: 3,
            customers: 30,
            items: 100,
        };
        let (kit, mut random) = (Tpcc(scale), Rng::new(5, 1));
        let mut user = kit.user(7, &mut random);
        assert_eq!(user.warehouse, 2);
        let mut counts = [0u64; 5];
        for _ in 0..100_000 {
            counts[kit.draw(&mut user, &mut random)] += 1;
        }
        for (count, share) in counts.into_iter().zip(MIX) {
            assert!(count.abs_diff(share * 1000) < 600, "{counts:?}");
        }
    }
}
