//! The fourteen interactions (clause 2).

use sooner_workload::Rng;

use super::fill::SUBJECTS;
use super::statements as s;
use super::{Scale, Visitor};
use crate::draw::{between, text};
use crate::{Failure, Session};

/// One that is being carried out, inside a transaction that may yet be taken back.
pub struct Interaction<'a> {
    pub session: &'a Session,
    pub scale: &'a Scale,
    pub visitor: &'a mut Visitor,
    /// The one that the visitor has when all of this has happened.
    pub cart: Option<i32>,
    pub random: &'a mut Rng,
}

/// One in so many visitors who come home is another customer.
const VISITS: u64 = 5;
/// The last orders, in which best sellers are looked for.
const RECENT_ORDERS: i32 = 3333;
/// One in so many who buy was never here before.
const NEW_CUSTOMERS: u64 = 5;

impl Interaction<'_> {
    /// The one of this kind.
    pub async fn carry_out(&mut self, kind: &str) -> Result<(), Failure> {
        match kind {
            "home" => self.home().await,
            "new_products" => self.by_subject(s::NEW_PRODUCTS).await,
            "best_sellers" => self.best_sellers().await,
            "product_detail" | "admin_request" => self.detail().await,
            "search_request" => self.promoted().await,
            "search_results" => self.search().await,
            "shopping_cart" => self.cart().await,
            "customer_registration" | "order_inquiry" => self.name().await,
            "buy_request" => self.buy_request().await,
            "buy_confirm" => self.buy_confirm().await,
            "order_display" => self.last_order().await,
            _ => self.change_item().await,
        }
    }

    fn item(&mut self) -> i32 {
        between(self.random, 1, self.scale.items) as i32
    }

    fn subject(&mut self) -> &'static str {
        SUBJECTS[self.random.below(SUBJECTS.len() as u64) as usize]
    }

    async fn home(&mut self) -> Result<(), Failure> {
        if self.random.below(VISITS) == 0 {
            self.visitor.customer = 1 + self.random.below(self.scale.customers) as i32;
            self.cart = None;
        }
        self.name().await?;
        self.promoted().await
    }

    async fn name(&mut self) -> Result<(), Failure> {
        let customer = self.visitor.customer;
        self.session.rows(s::CUSTOMER_NAME, &[&customer]).await?;
        Ok(())
    }

    async fn promoted(&mut self) -> Result<(), Failure> {
        let item = self.item();
        self.session.rows(s::PROMOTED, &[&item]).await?;
        Ok(())
    }

    async fn by_subject(&mut self, statement: usize) -> Result<(), Failure> {
        let subject = self.subject();
        self.session.rows(statement, &[&subject]).await?;
        Ok(())
    }

    async fn best_sellers(&mut self) -> Result<(), Failure> {
        let subject = self.subject();
        let last = self.session.row(s::LAST_ORDER_NUMBER, &[]).await?;
        let before = last.get::<_, Option<i32>>(0).unwrap_or(0) - RECENT_ORDERS;
        self.session
            .rows(s::BEST_SELLERS, &[&subject, &before])
            .await?;
        Ok(())
    }

    async fn detail(&mut self) -> Result<(), Failure> {
        let item = self.item();
        self.session.rows(s::DETAIL, &[&item]).await?;
        Ok(())
    }

    /// By author, title or subject.
    async fn search(&mut self) -> Result<(), Failure> {
        let by = self.random.below(3);
        let word = text(self.random, 2, 3);
        match by {
            0 => self.session.rows(s::BY_AUTHOR, &[&word]).await?,
            1 => self.session.rows(s::BY_TITLE, &[&word]).await?,
            _ => return self.by_subject(s::BY_SUBJECT).await,
        };
        Ok(())
    }

    /// A cart with something in it.
    async fn fill_cart(&mut self) -> Result<i32, Failure> {
        let cart = match self.cart {
            Some(cart) => cart,
            None => self.session.row(s::NEW_CART, &[]).await?.get(0),
        };
        let (item, quantity) = (self.item(), between(self.random, 1, 3) as i32);
        self.session
            .execute(s::PUT_IN_CART, &[&cart, &item, &quantity])
            .await?;
        self.session.execute(s::TOUCH_CART, &[&cart]).await?;
        Ok(cart)
    }

    async fn cart(&mut self) -> Result<(), Failure> {
        let cart = self.fill_cart().await?;
        self.session.rows(s::CART, &[&cart]).await?;
        self.cart = Some(cart);
        Ok(())
    }

    async fn buy_request(&mut self) -> Result<(), Failure> {
        if self.random.below(NEW_CUSTOMERS) == 0 {
            let part = |random: &mut Rng| text(random, 8, 15);
            let (street, more, city) = (part(self.random), part(self.random), part(self.random));
            let row = self
                .session
                .row(s::ADD_ADDRESS, &[&street, &more, &city])
                .await?;
            let address: i32 = row.get(0);
            let (name, first, last) = (part(self.random), part(self.random), part(self.random));
            let discount = self.random.below(51) as f64 / 100.0;
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                [&name, &first, &last, &address, &discount];
            self.session.rows(s::ADD_CUSTOMER, &parameters).await?;
        } else {
            let customer = self.visitor.customer;
            self.session.rows(s::LOG_IN, &[&customer]).await?;
        }
        let cart = self.fill_cart().await?;
        self.session.rows(s::CART, &[&cart]).await?;
        self.cart = Some(cart);
        Ok(())
    }

    async fn buy_confirm(&mut self) -> Result<(), Failure> {
        let cart = match self.cart {
            Some(cart) => cart,
            None => self.fill_cart().await?,
        };
        let customer = self.visitor.customer;
        let session = self.session;
        // In one order for all, and what they cost stays.
        session.rows(s::LOCK_ITEMS, &[&cart]).await?;
        session.execute(s::TAKE_STOCK, &[&cart]).await?;
        let order: i32 = session.row(s::ADD_ORDER, &[&customer, &cart]).await?.get(0);
        session
            .execute(s::ADD_LINES, &[&order, &customer, &cart])
            .await?;
        session.execute(s::PAY, &[&order]).await?;
        session.execute(s::EMPTY_CART, &[&cart]).await?;
        self.cart = None;
        Ok(())
    }

    async fn last_order(&mut self) -> Result<(), Failure> {
        let customer = self.visitor.customer;
        let orders = self.session.rows(s::LAST_ORDER, &[&customer]).await?;
        if let Some(order) = orders.first() {
            let order: i32 = order.get(0);
            self.session.rows(s::ORDER_LINES, &[&order]).await?;
        }
        Ok(())
    }

    async fn change_item(&mut self) -> Result<(), Failure> {
        let item = self.item();
        let cost = between(self.random, 100, 999_999) as f64 / 100.0;
        let image = text(self.random, 8, 8);
        self.session
            .execute(s::CHANGE_ITEM, &[&item, &cost, &image])
            .await?;
        Ok(())
    }
}
