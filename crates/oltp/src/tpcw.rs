//! TPC-W in its shape: fourteen interactions with a bookstore (TPC-W 1.8), some of which take a
//! hundred times as long as others.
//!
//! What differs from the rules: there are no browsers and no pages, an interaction is one
//! transaction; interactions are drawn by the shares that the rules give for each mix, and not by
//! the chain that leads to them; the price of an order is what its lines cost, tax and a flat price
//! for shipping. Searches look inside names and titles, as in the rules, so they read whole tables.

mod fill;
mod interactions;
mod schema;
mod statements;

use std::pin::Pin;
use std::rc::Rc;
use std::str::FromStr;

use sooner_workload::Rng;
use tokio_postgres::Client;

use crate::kit::drawn;
use crate::{Check, DatabaseUrl, Ended, Failure, Kit, Session, Unusable, run};

pub use fill::fill;

/// How much data there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Books: 1000, 10 000 or more by the rules.
    pub items: u64,
    /// Customers: 2880 for each browser by the rules.
    pub customers: u64,
}

/// How often each interaction is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// 95 in a hundred look.
    Browsing,
    /// 80 in a hundred.
    Shopping,
    /// 50 in a hundred.
    Ordering,
}

/// The kinds of transactions.
pub const KINDS: &[&str] = &[
    "home",
    "new_products",
    "best_sellers",
    "product_detail",
    "search_request",
    "search_results",
    "shopping_cart",
    "customer_registration",
    "buy_request",
    "buy_confirm",
    "order_inquiry",
    "order_display",
    "admin_request",
    "admin_confirm",
];

impl Mix {
    /// Of ten thousand interactions, in the order of [`KINDS`] (clause 5.2.1).
    fn shares(self) -> [u64; 14] {
        match self {
            Self::Browsing => [
                2900, 1100, 1100, 2100, 1200, 1100, 200, 82, 75, 69, 30, 25, 10, 9,
            ],
            Self::Shopping => [
                1600, 500, 500, 1700, 2000, 1700, 1160, 300, 260, 120, 75, 66, 10, 9,
            ],
            Self::Ordering => [
                912, 46, 46, 1235, 1453, 1308, 1353, 1286, 1273, 1018, 25, 22, 12, 11,
            ],
        }
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "browsing" => Ok(Self::Browsing),
            "shopping" => Ok(Self::Shopping),
            "ordering" => Ok(Self::Ordering),
            _ => Err(format!(
                "there is no mix {text}; there are browsing, shopping and ordering"
            )),
        }
    }
}

/// The kit for data of some scale.
#[derive(Clone, Copy, Debug)]
pub struct Tpcw {
    /// Of the data.
    pub scale: Scale,
    /// Of the users.
    pub mix: Mix,
}

/// A visitor of the shop.
#[derive(Debug)]
pub struct Visitor {
    customer: i32,
    /// Where there is one.
    cart: Option<i32>,
}

impl Tpcw {
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

impl Kit for Tpcw {
    type User = Visitor;

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn statements(&self) -> &'static [&'static str] {
        statements::ALL
    }

    fn user(&self, _number: u32, random: &mut Rng) -> Visitor {
        Visitor {
            customer: 1 + random.below(self.scale.customers) as i32,
            cart: None,
        }
    }

    fn draw(&self, _user: &mut Visitor, random: &mut Rng) -> usize {
        drawn(&self.mix.shares(), random)
    }

    async fn carry_out(
        &self,
        session: &Session,
        user: &mut Visitor,
        kind: usize,
        remark: &str,
        random: &mut Rng,
    ) -> Result<Ended, Failure> {
        let mut one = interactions::Interaction {
            session,
            scale: &self.scale,
            cart: user.cart,
            visitor: user,
            random,
        };
        session.begin(remark).await?;
        one.carry_out(KINDS[kind]).await?;
        session.commit().await?;
        let cart = one.cart;
        user.cart = cart;
        Ok(Ended::Committed)
    }
}

/// How many of each there are; fails where a table is not there. Customers who came later have
/// other names, and numbers with gaps between them.
async fn counts(client: &Client) -> Result<Scale, Unusable> {
    let sql = "SELECT (SELECT count(*) FROM item), (SELECT coalesce(max(c_id), 0)::bigint FROM customer WHERE c_uname = 'user' || c_id),
      (SELECT count(*) FROM author)";
    let row = client.query_one(sql, &[]).await;
    let row = row.map_err(|error| Unusable::unfilled(error, "tpcw"))?;
    let (items, customers): (i64, i64) = (row.get(0), row.get(1));
    Ok(Scale {
        items: items as u64,
        customers: customers as u64,
    })
}

/// The scale of the data that is there.
pub async fn scale_of(client: &Client) -> Result<Scale, Unusable> {
    let scale = counts(client).await?;
    match scale {
        Scale { items: 0, .. } => Err(Unusable::empty("books", "tpcw")),
        Scale { customers: 0, .. } => Err(Unusable::empty("customers", "tpcw")),
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
    fn shares_are_of_ten_thousand_and_half_of_ordering_orders() {
        for (mix, looks) in [
            (Mix::Browsing, 9500),
            (Mix::Shopping, 8000),
            (Mix::Ordering, 5000),
        ] {
            let shares = mix.shares();
            assert_eq!(shares.iter().sum::<u64>(), 10_000, "{mix:?}");
            assert_eq!(shares[..6].iter().sum::<u64>(), looks, "{mix:?}");
        }
    }

    #[test]
    fn interactions_come_as_often_as_their_mix_has_it() {
        let scale = Scale {
            items: 100,
            customers: 10,
        };
        let kit = Tpcw {
            scale,
            mix: Mix::Shopping,
        };
        let mut random = Rng::new(3, 1);
        let mut user = kit.user(0, &mut random);
        let mut counts = [0u64; 14];
        for _ in 0..100_000 {
            counts[kit.draw(&mut user, &mut random)] += 1;
        }
        for (count, share) in counts.into_iter().zip(kit.mix.shares()) {
            assert!(count.abs_diff(10 * share) < 500, "{counts:?}");
        }
    }
}
