//! The data (clause 4), by COPY.

use sooner_workload::Rng;
use tokio_postgres::Client;

use super::Scale;
use super::schema::{KEYS, TABLES};
use crate::Unusable;
use crate::draw::{between, text};
use crate::rows::{Copy, begin, end};

/// Subjects of books.
pub const SUBJECTS: [&str; 24] = [
    "ARTS",
    "BIOGRAPHIES",
    "BUSINESS",
    "CHILDREN",
    "COMPUTERS",
    "COOKING",
    "HEALTH",
    "HISTORY",
    "HOME",
    "HUMOR",
    "LITERATURE",
    "MYSTERY",
    "NON-FICTION",
    "PARENTING",
    "POLITICS",
    "REFERENCE",
    "RELIGION",
    "ROMANCE",
    "SELF-HELP",
    "SCIENCE-NATURE",
    "SCIENCE-FICTION",
    "SPORTS",
    "YOUTH",
    "TRAVEL",
];

/// Makes the tables and fills them, all or nothing; `say` is told what is done.
pub async fn fill(
    client: &Client,
    scale: &Scale,
    seed: u64,
    mut say: impl FnMut(&str),
) -> Result<(), Unusable> {
    begin(client, &["author", "customer", "order_line"], TABLES).await?;
    let mut random = Rng::new(seed, 1);
    let authors = (scale.items / 4).max(1);
    self::authors(client, authors, &mut random).await?;
    let costs = items(client, scale, authors, &mut random).await?;
    say(&format!("{} books", scale.items));
    customers(client, scale, &mut random).await?;
    say(&format!("{} customers", scale.customers));
    orders(client, scale, &costs, &mut random).await?;
    say("keys and indexes");
    end(client, KEYS).await
}

async fn authors(client: &Client, authors: u64, random: &mut Rng) -> Result<(), Unusable> {
    let mut copy = Copy::into(client, "author").await?;
    for author in 1..=authors {
        let (first, last, middle) = (
            text(random, 3, 20),
            text(random, 5, 20),
            text(random, 1, 20),
        );
        let about = text(random, 125, 500);
        copy.row(&format!(
            "{author}\t{first}\t{last}\t{middle}\t1950-01-01\t{about}"
        ))
        .await?;
    }
    copy.end().await
}

/// Gives what each costs, in cents.
async fn items(
    client: &Client,
    scale: &Scale,
    authors: u64,
    random: &mut Rng,
) -> Result<Vec<u64>, Unusable> {
    let mut costs = Vec::new();
    let mut copy = Copy::into(client, "item").await?;
    for item in 1..=scale.items {
        let (title, author) = (text(random, 14, 60), between(random, 1, authors));
        let (year, month) = (between(random, 1990, 2020), between(random, 1, 12));
        let subject = SUBJECTS[random.below(SUBJECTS.len() as u64) as usize];
        let (publisher, about) = (text(random, 14, 60), text(random, 100, 500));
        let related: Vec<String> = (0..5)
            .map(|_| between(random, 1, scale.items).to_string())
            .collect();
        let price = between(random, 100, 999_999);
        let cost = price * between(random, 50, 100) / 100;
        let (stock, isbn, pages) = (
            between(random, 10, 30),
            text(random, 13, 13),
            between(random, 20, 9999),
        );
        copy.row(&format!(
            "{item}\t{title}\t{author}\t{year}-{month}-01\t{publisher}\t{subject}\t{about}\t{{{}}}\timg/{item}.gif\timg/{item}.jpg\t{}\t{}\t{year}-{month}-28\t{stock}\t{isbn}\t{pages}\tPAPERBACK",
            related.join(","),
            money(price),
            money(cost)
        ))
        .await?;
        costs.push(cost);
    }
    copy.end().await?;
    Ok(costs)
}

fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Each with an address.
async fn customers(client: &Client, scale: &Scale, random: &mut Rng) -> Result<(), Unusable> {
    let mut copy = Copy::into(client, "address").await?;
    for address in 1..=scale.customers {
        let (one, two, city) = (
            text(random, 15, 40),
            text(random, 15, 40),
            text(random, 4, 30),
        );
        copy.row(&format!(
            "{address}\t{one}\t{two}\t{city}\tST\t12345\tNowhere"
        ))
        .await?;
    }
    copy.end().await?;
    let mut copy = Copy::into(client, "customer").await?;
    for customer in 1..=scale.customers {
        let (first, last) = (text(random, 8, 15), text(random, 8, 15));
        let (discount, about) = (random.below(51), text(random, 100, 500));
        copy.row(&format!(
            "{customer}\tuser{customer}\tuser{customer}\t{first}\t{last}\t{customer}\t0123456789\t{first}@example.org\t2020-01-01\tnow\tnow\t0.{discount:02}\t0\t0\t{about}"
        ))
        .await?;
    }
    copy.end().await
}

/// Nine for ten customers, of one to five books each.
async fn orders(
    client: &Client,
    scale: &Scale,
    costs: &[u64],
    random: &mut Rng,
) -> Result<(), Unusable> {
    let (mut lines, mut paid) = (Vec::new(), Vec::new());
    let mut copy = Copy::into(client, "orders").await?;
    for order in 1..=(scale.customers * 9 / 10).max(1) {
        let customer = between(random, 1, scale.customers);
        let count = between(random, 1, 5);
        let mut sub = 0;
        for line in 1..=count {
            let item = between(random, 1, scale.items);
            let quantity = between(random, 1, 5);
            let amount = quantity * costs[item as usize - 1];
            sub += amount;
            lines.push(format!(
                "{order}\t{line}\t{item}\t{quantity}\t{}\t",
                money(amount)
            ));
        }
        let tax = sub * 825 / 10_000;
        let total = money(sub + tax + 100 * (3 + count));
        copy.row(&format!(
            "{order}\t{customer}\tnow\t{}\t{}\t{total}\tAIR\tnow\t{customer}\tSHIPPED",
            money(sub),
            money(tax)
        ))
        .await?;
        paid.push(format!(
            "{order}\tVISA\t1234123412341234\tsomebody\t2030-01-01\t{total}\tnow"
        ));
    }
    copy.end().await?;
    for (table, rows) in [("order_line", lines), ("cc_xacts", paid)] {
        Copy::all(client, table, rows).await?;
    }
    Ok(())
}
