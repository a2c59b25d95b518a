//! The data, as the clauses of 4.3.3 have it, by COPY.

use sooner_workload::Rng;
use tokio_postgres::Client;

use super::Scale;
use super::random::{data, last_name};
use super::schema::{KEYS, TABLES};
use crate::Unusable;
use crate::draw::{between, text};
use crate::rows::{Copy, begin, end};

/// Districts of a warehouse.
pub const DISTRICTS: u64 = 10;
/// What a customer has paid at the beginning, and the warehouse's year follows from.
const PAID: f64 = 10.0;

/// Makes the tables and fills them, all or nothing; `say` is told what is done.
pub async fn fill(
    client: &Client,
    scale: &Scale,
    seed: u64,
    mut say: impl FnMut(&str),
) -> Result<(), Unusable> {
    begin(client, &["warehouse", "district", "order_line"], TABLES).await?;
    let mut random = Rng::new(seed, 1);
    items(client, scale, &mut random).await?;
    for warehouse in 1..=scale.warehouses {
        self::warehouse(client, scale, warehouse, &mut random).await?;
        say(&format!("warehouse {warehouse} of {}", scale.warehouses));
    }
    say("keys and indexes");
    end(client, KEYS).await
}

async fn items(client: &Client, scale: &Scale, random: &mut Rng) -> Result<(), Unusable> {
    let mut copy = Copy::into(client, "item").await?;
    for item in 1..=scale.items {
        let (image, name) = (between(random, 1, 10_000), text(random, 14, 24));
        let price = between(random, 100, 10_000) as f64 / 100.0;
        let about = data(random);
        copy.row(&format!("{item}\t{image}\t{name}\t{price:.2}\t{about}"))
            .await?;
    }
    copy.end().await
}

/// Two streets, a city, a state, a code.
fn address(random: &mut Rng) -> String {
    let mut part = |least, most| text(random, least, most);
    let (one, two, city, state) = (part(10, 20), part(10, 20), part(10, 20), part(2, 2));
    let code = between(random, 0, 9999);
    format!("{one}\t{two}\t{city}\t{state}\t{code:04}11111")
}

async fn warehouse(
    client: &Client,
    scale: &Scale,
    number: u64,
    random: &mut Rng,
) -> Result<(), Unusable> {
    let of_district = scale.customers as f64 * PAID;
    let (name, place) = (text(random, 6, 10), address(random));
    let tax = between(random, 0, 2000) as f64 / 10_000.0;
    let year = of_district * DISTRICTS as f64;
    let mut copy = Copy::into(client, "warehouse").await?;
    copy.row(&format!("{number}\t{name}\t{place}\t{tax}\t{year:.2}"))
        .await?;
    copy.end().await?;
    let mut copy = Copy::into(client, "district").await?;
    for district in 1..=DISTRICTS {
        let (name, place) = (text(random, 6, 10), address(random));
        let tax = between(random, 0, 2000) as f64 / 10_000.0;
        let next = scale.customers + 1;
        copy.row(&format!(
            "{number}\t{district}\t{name}\t{place}\t{tax}\t{of_district:.2}\t{next}"
        ))
        .await?;
    }
    copy.end().await?;
    stock(client, scale, number, random).await?;
    for district in 1..=DISTRICTS {
        customers(client, scale, (number, district), random).await?;
        orders(client, scale, (number, district), random).await?;
    }
    Ok(())
}

async fn stock(
    client: &Client,
    scale: &Scale,
    warehouse: u64,
    random: &mut Rng,
) -> Result<(), Unusable> {
    let mut copy = Copy::into(client, "stock").await?;
    for item in 1..=scale.items {
        let quantity = between(random, 10, 100);
        let districts: Vec<String> = (0..DISTRICTS).map(|_| text(random, 24, 24)).collect();
        let (districts, about) = (districts.join(","), data(random));
        copy.row(&format!(
            "{warehouse}\t{item}\t{quantity}\t{{{districts}}}\t0\t0\t0\t{about}"
        ))
        .await?;
    }
    copy.end().await
}

async fn customers(
    client: &Client,
    scale: &Scale,
    (warehouse, district): (u64, u64),
    random: &mut Rng,
) -> Result<(), Unusable> {
    let mut copy = Copy::into(client, "customer").await?;
    for customer in 1..=scale.customers {
        let last = if customer <= 1000 {
            last_name(customer - 1)
        } else {
            last_name(random.below(1000))
        };
        let (first, place) = (text(random, 8, 16), address(random));
        let phone: u64 = between(random, 1_000_000_000_000_000, 9_999_999_999_999_999);
        let credit = if random.below(10) == 0 { "BC" } else { "GC" };
        let discount = between(random, 0, 5000) as f64 / 10_000.0;
        let about = text(random, 300, 500);
        copy.row(&format!(
            "{warehouse}\t{district}\t{customer}\t{first}\tOE\t{last}\t{place}\t{phone}\tnow\t{credit}\t50000\t{discount}\t-{PAID:.2}\t{PAID:.2}\t1\t0\t{about}"
        ))
        .await?;
    }
    copy.end().await?;
    let mut copy = Copy::into(client, "history").await?;
    for customer in 1..=scale.customers {
        let about = text(random, 12, 24);
        copy.row(&format!(
            "{customer}\t{district}\t{warehouse}\t{district}\t{warehouse}\tnow\t{PAID:.2}\t{about}"
        ))
        .await?;
    }
    copy.end().await
}

/// One order a customer, in any order; the last three tenths are new.
async fn orders(
    client: &Client,
    scale: &Scale,
    (warehouse, district): (u64, u64),
    random: &mut Rng,
) -> Result<(), Unusable> {
    let first_new = scale.customers - scale.customers * 3 / 10 + 1;
    let mut customers: Vec<u64> = (1..=scale.customers).collect();
    for at in (1..customers.len()).rev() {
        customers.swap(at, random.below(at as u64 + 1) as usize);
    }
    let (mut order_rows, mut line_rows) = (Vec::new(), Vec::new());
    for (order, customer) in (1..).zip(customers) {
        let is_new = order >= first_new;
        let carrier = if is_new {
            "\\N".to_owned()
        } else {
            between(random, 1, 10).to_string()
        };
        let lines = between(random, 5, 15);
        order_rows.push(format!(
            "{warehouse}\t{district}\t{order}\t{customer}\tnow\t{carrier}\t{lines}\t1"
        ));
        for line in 1..=lines {
            let item = between(random, 1, scale.items);
            let (delivered, amount) = if is_new {
                ("\\N", between(random, 1, 999_999) as f64 / 100.0)
            } else {
                ("now", 0.0)
            };
            let about = text(random, 24, 24);
            line_rows.push(format!(
                "{warehouse}\t{district}\t{order}\t{line}\t{item}\t{warehouse}\t{delivered}\t5\t{amount:.2}\t{about}"
            ));
        }
    }
    let new: Vec<String> = (first_new..=scale.customers)
        .map(|order| format!("{warehouse}\t{district}\t{order}"))
        .collect();
    for (table, rows) in [
        ("orders", order_rows),
        ("order_line", line_rows),
        ("new_order", new),
    ] {
        Copy::all(client, table, rows).await?;
    }
    Ok(())
}
