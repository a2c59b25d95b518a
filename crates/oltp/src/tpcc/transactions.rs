//! The five transactions (clauses 2.4 to 2.8).

use sooner_workload::Rng;

use super::Scale;
use super::fill::DISTRICTS;
use super::random::{asked_last_name, customer, item};
use super::statements as s;
use crate::draw::between;
use crate::{Ended, Failure, Session};

/// Last orders of a district; the stock level looks at their items (clause 2.8.2.2).
const STOCK_ORDERS: i32 = 20;

/// One that is being carried out.
pub struct Transaction<'a> {
    pub session: &'a Session,
    pub scale: &'a Scale,
    /// The terminal's.
    pub warehouse: u64,
    pub remark: &'a str,
    pub random: &'a mut Rng,
}

/// A line of an order that is wanted.
struct Line {
    item: i32,
    warehouse: i32,
    quantity: i32,
}

/// The district of the customer that the order or payment belongs to.
struct CustomerDistrict {
    warehouse: i32,
    district: i32,
}

impl Transaction<'_> {
    fn district(&mut self) -> i32 {
        between(self.random, 1, DISTRICTS) as i32
    }

    fn customer(&mut self) -> i32 {
        customer(self.random, self.scale.customers) as i32
    }

    /// Another warehouse, if there is one.
    fn remote(&mut self) -> u64 {
        let others = self.scale.warehouses - 1;
        match others {
            0 => self.warehouse,
            _ => 1 + (self.warehouse + self.random.below(others)) % self.scale.warehouses,
        }
    }

    fn lines(&mut self) -> Vec<Line> {
        let count = between(self.random, 5, 15);
        let mut lines: Vec<Line> = Vec::new();
        while (lines.len() as u64) < count {
            let item = item(self.random, self.scale.items) as i32;
            let warehouse = match self.random.below(100) {
                0 => self.remote(),
                _ => self.warehouse,
            };
            let quantity = between(self.random, 1, 10) as i32;
            // Each once: a row of the stock is changed once by one statement.
            if lines.iter().all(|line| line.item != item) || self.scale.items < 2 * count {
                lines.push(Line {
                    item,
                    warehouse: warehouse as i32,
                    quantity,
                });
            }
        }
        // In one order for all, or transactions would lock each other out for good.
        lines.sort_by_key(|line| (line.warehouse, line.item));
        lines.dedup_by_key(|line| (line.warehouse, line.item));
        lines
    }

    pub async fn new_order(&mut self) -> Result<Ended, Failure> {
        let (warehouse, district) = (self.warehouse as i32, self.district());
        let customer = self.customer();
        let mut lines = self.lines();
        // One in a hundred names an item that does not exist, and is taken back (clause 2.4.1.4).
        let is_wrong = self.random.below(100) == 0;
        if is_wrong && let Some(last) = lines.last_mut() {
            last.item = self.scale.items as i32 + 1;
        }
        let session = self.session;
        session.begin(self.remark).await?;
        let tax: f64 = session.row(s::TAX, &[&warehouse]).await?.get(0);
        let next = session.row(s::NEXT_ORDER, &[&warehouse, &district]).await?;
        let (order, district_tax): (i32, f64) = (next.get(0), next.get(1));
        let known = session
            .row(s::CUSTOMER_DISCOUNT, &[&warehouse, &district, &customer])
            .await?;
        let discount: f64 = known.get(0);
        let is_local = lines.iter().all(|line| line.warehouse == warehouse);
        let (count, all_local) = (lines.len() as i32, i32::from(is_local));
        session
            .execute(
                s::ADD_ORDER,
                &[&warehouse, &district, &order, &customer, &count, &all_local],
            )
            .await?;
        session
            .execute(s::ADD_NEW_ORDER, &[&warehouse, &district, &order])
            .await?;
        let factor = (1.0 - discount) * (1.0 + tax + district_tax);
        match self
            .order_lines((warehouse, district, order), &lines, factor)
            .await?
        {
            true => {
                session.commit().await?;
                Ok(Ended::Committed)
            }
            false => {
                session.roll_back().await?;
                Ok(Ended::RolledBack)
            }
        }
    }

    /// Takes the items from the stock and writes the lines; whether there were all of them.
    async fn order_lines(
        &self,
        (warehouse, district, order): (i32, i32, i32),
        lines: &[Line],
        factor: f64,
    ) -> Result<bool, Failure> {
        let session = self.session;
        let items: Vec<i32> = lines.iter().map(|line| line.item).collect();
        let supplies: Vec<i32> = lines.iter().map(|line| line.warehouse).collect();
        let quantities: Vec<i32> = lines.iter().map(|line| line.quantity).collect();
        let mut prices = std::collections::BTreeMap::<i32, f64>::new();
        for row in session.rows(s::PRICES, &[&items]).await? {
            prices.insert(row.get(0), row.get(1));
        }
        if items.iter().any(|item| !prices.contains_key(item)) {
            return Ok(false);
        }
        let mut abouts = std::collections::BTreeMap::<i32, String>::new();
        let taken = session
            .rows(
                s::TAKE_STOCK,
                &[&warehouse, &supplies, &items, &quantities, &district],
            )
            .await?;
        for row in taken {
            abouts.insert(row.get(0), row.get(1));
        }
        let numbers: Vec<i32> = (1..=lines.len() as i32).collect();
        let amount = |line: &Line| f64::from(line.quantity) * prices[&line.item] * factor;
        let amounts: Vec<f64> = lines.iter().map(amount).collect();
        let about = |item: &i32| abouts.get(item).cloned().unwrap_or_default();
        let texts: Vec<String> = items.iter().map(about).collect();
        session
            .execute(
                s::ADD_LINES,
                &[
                    &warehouse,
                    &district,
                    &order,
                    &numbers,
                    &items,
                    &supplies,
                    &quantities,
                    &amounts,
                    &texts,
                ],
            )
            .await?;
        Ok(true)
    }

    /// Three in five customers are known by name: the one in the middle of all of that name counts.
    async fn find_customer(&mut self, at: &CustomerDistrict) -> Result<i32, Failure> {
        if self.random.below(100) >= 60 {
            return Ok(self.customer());
        }
        let name = asked_last_name(self.random, self.scale.customers);
        let found = self
            .session
            .rows(s::CUSTOMERS_BY_NAME, &[&at.warehouse, &at.district, &name])
            .await?;
        Ok(match found.len() {
            0 => self.customer(),
            count => found[count.div_ceil(2) - 1].get(0),
        })
    }

    pub async fn payment(&mut self) -> Result<Ended, Failure> {
        let (warehouse, district) = (self.warehouse as i32, self.district());
        // 15 in a hundred customers are of another warehouse (clause 2.5.1.2).
        let of = if self.random.below(100) < 15 {
            CustomerDistrict {
                warehouse: self.remote() as i32,
                district: self.district(),
            }
        } else {
            CustomerDistrict {
                warehouse,
                district,
            }
        };
        let amount = between(self.random, 100, 500_000) as f64 / 100.0;
        let session = self.session;
        session.begin(self.remark).await?;
        let row = session
            .row(s::PAY_WAREHOUSE, &[&warehouse, &amount])
            .await?;
        let warehouse_name: String = row.get(0);
        let row = session
            .row(s::PAY_DISTRICT, &[&warehouse, &district, &amount])
            .await?;
        let district_name: String = row.get(0);
        let customer = self.find_customer(&of).await?;
        let note = format!("{customer} {} {} {amount:.2} ", of.district, of.warehouse);
        session
            .execute(
                s::PAY_CUSTOMER,
                &[&of.warehouse, &of.district, &customer, &amount, &note],
            )
            .await?;
        let about = format!("{warehouse_name}    {district_name}");
        session
            .execute(
                s::ADD_HISTORY,
                &[
                    &customer,
                    &of.district,
                    &of.warehouse,
                    &district,
                    &warehouse,
                    &amount,
                    &about,
                ],
            )
            .await?;
        session.commit().await?;
        Ok(Ended::Committed)
    }

    pub async fn order_status(&mut self) -> Result<Ended, Failure> {
        let of = CustomerDistrict {
            warehouse: self.warehouse as i32,
            district: self.district(),
        };
        let session = self.session;
        session.begin(self.remark).await?;
        let customer = self.find_customer(&of).await?;
        let place = (of.warehouse, of.district);
        session
            .rows(s::CUSTOMER_BALANCE, &[&place.0, &place.1, &customer])
            .await?;
        let last = session
            .rows(s::LAST_ORDER, &[&place.0, &place.1, &customer])
            .await?;
        if let Some(last) = last.first() {
            let order: i32 = last.get(0);
            session
                .rows(s::ORDER_LINES, &[&place.0, &place.1, &order])
                .await?;
        }
        session.commit().await?;
        Ok(Ended::Committed)
    }

    pub async fn delivery(&mut self) -> Result<Ended, Failure> {
        let warehouse = self.warehouse as i32;
        let carrier = between(self.random, 1, 10) as i32;
        let session = self.session;
        session.begin(self.remark).await?;
        for district in 1..=DISTRICTS as i32 {
            let oldest = session
                .rows(s::OLDEST_NEW, &[&warehouse, &district])
                .await?;
            // A district without new orders is passed over (clause 2.7.4.2).
            let Some(oldest) = oldest.first() else {
                continue;
            };
            let order: i32 = oldest.get(0);
            let row = session
                .row(s::GIVE_CARRIER, &[&warehouse, &district, &order, &carrier])
                .await?;
            let customer: i32 = row.get(0);
            let row = session
                .row(s::DELIVER_LINES, &[&warehouse, &district, &order])
                .await?;
            let amount: f64 = row.get::<_, Option<f64>>(0).unwrap_or(0.0);
            session
                .execute(
                    s::CHARGE_CUSTOMER,
                    &[&warehouse, &district, &customer, &amount],
                )
                .await?;
        }
        session.commit().await?;
        Ok(Ended::Committed)
    }

    pub async fn stock_level(&mut self) -> Result<Ended, Failure> {
        let (warehouse, district) = (self.warehouse as i32, self.district());
        let threshold = between(self.random, 10, 20) as i32;
        let session = self.session;
        session.begin(self.remark).await?;
        let next = session
            .row(s::NEXT_ORDER_NUMBER, &[&warehouse, &district])
            .await?;
        let to: i32 = next.get(0);
        let from = to - STOCK_ORDERS;
        session
            .rows(
                s::STOCK_LEVEL,
                &[&warehouse, &district, &threshold, &from, &to],
            )
            .await?;
        session.commit().await?;
        Ok(Ended::Committed)
    }
}
