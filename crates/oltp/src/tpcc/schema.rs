//! The nine tables (clause 1.3), their keys and the one index more that transactions need.

/// Made before the data.
pub const TABLES: &str = "
CREATE TABLE warehouse (w_id int, w_name text, w_street_1 text, w_street_2 text, w_city text, w_state text, w_zip text,
  w_tax float8, w_ytd numeric(14,2));
CREATE TABLE district (d_w_id int, d_id int, d_name text, d_street_1 text, d_street_2 text, d_city text, d_state text, d_zip text,
  d_tax float8, d_ytd numeric(14,2), d_next_o_id int);
CREATE TABLE customer (c_w_id int, c_d_id int, c_id int, c_first text, c_middle text, c_last text, c_street_1 text, c_street_2 text,
  c_city text, c_state text, c_zip text, c_phone text, c_since timestamptz, c_credit text, c_credit_lim numeric(12,2), c_discount float8,
  c_balance numeric(14,2), c_ytd_payment numeric(14,2), c_payment_cnt int, c_delivery_cnt int, c_data text);
CREATE TABLE history (h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamptz, h_amount numeric(8,2), h_data text);
CREATE TABLE orders (o_w_id int, o_d_id int, o_id int, o_c_id int, o_entry_d timestamptz, o_carrier_id int, o_ol_cnt int, o_all_local int);
CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int);
CREATE TABLE order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int, ol_supply_w_id int,
  ol_delivery_d timestamptz, ol_quantity int, ol_amount numeric(8,2), ol_dist_info text);
CREATE TABLE item (i_id int, i_im_id int, i_name text, i_price numeric(6,2), i_data text);
CREATE TABLE stock (s_w_id int, s_i_id int, s_quantity int, s_dist text[], s_ytd int, s_order_cnt int, s_remote_cnt int, s_data text);
";

/// Made after it, which is quicker.
pub const KEYS: &str = "
ALTER TABLE warehouse ADD PRIMARY KEY (w_id);
ALTER TABLE district ADD PRIMARY KEY (d_w_id, d_id);
ALTER TABLE customer ADD PRIMARY KEY (c_w_id, c_d_id, c_id);
CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first);
ALTER TABLE orders ADD PRIMARY KEY (o_w_id, o_d_id, o_id);
CREATE INDEX orders_of_customer ON orders (o_w_id, o_d_id, o_c_id, o_id);
ALTER TABLE new_order ADD PRIMARY KEY (no_w_id, no_d_id, no_o_id);
ALTER TABLE order_line ADD PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number);
ALTER TABLE item ADD PRIMARY KEY (i_id);
ALTER TABLE stock ADD PRIMARY KEY (s_w_id, s_i_id);
";

/// What must hold (clause 3.3.2: conditions 1, 2 for orders, 4 to 10; 3 is weaker than there), as
/// counts of what says otherwise. Rows that are gone say so too: a sum of nothing is NULL, which is
/// distinct from what it must be.
pub const CHECKS: &[(&str, &str)] = &[
    (
        "1: a warehouse's year is its districts'",
        "SELECT count(*) FROM warehouse WHERE w_ytd IS DISTINCT FROM (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)",
    ),
    (
        "2: the next order's number follows the last order's",
        "SELECT count(*) FROM district WHERE d_next_o_id - 1 IS DISTINCT FROM (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id)",
    ),
    // That their numbers have no gaps does not hold here: two deliveries take different orders, and
    // the one that took the older may be taken back.
    (
        "3: new orders are orders",
        "SELECT count(*) FROM new_order WHERE NOT EXISTS (SELECT FROM orders WHERE o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id)",
    ),
    (
        "4: orders have as many lines as they say, district by district",
        "SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said FROM orders GROUP BY 1, 2) AS one
         FULL JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found FROM order_line GROUP BY 1, 2) AS other
         ON o_w_id = ol_w_id AND o_d_id = ol_d_id WHERE said IS DISTINCT FROM found",
    ),
    (
        "5: an order has no carrier if and only if it is new",
        "SELECT count(*) FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
         WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    ),
    (
        "6: each order has as many lines as it says",
        "SELECT count(*) FROM orders WHERE o_ol_cnt <> (SELECT count(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id)",
    ),
    (
        "7: lines are delivered if and only if their order has a carrier",
        "SELECT count(*) FROM order_line JOIN orders ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
         WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        "8: a warehouse's year is what was paid there",
        "SELECT count(*) FROM warehouse WHERE w_ytd IS DISTINCT FROM (SELECT sum(h_amount) FROM history WHERE h_w_id = w_id)",
    ),
    (
        "9: a district's year is what was paid there",
        "SELECT count(*) FROM district WHERE d_ytd IS DISTINCT FROM (SELECT sum(h_amount) FROM history WHERE h_w_id = d_w_id AND h_d_id = d_id)",
    ),
    (
        "10: a customer owes what was delivered and not paid",
        "SELECT count(*) FROM customer
         LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM orders
           JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3) AS d
           ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
         LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history GROUP BY 1, 2, 3) AS h
           ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
         WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)",
    ),
];
