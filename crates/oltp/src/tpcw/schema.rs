//! The tables (clause 1.2) as far as interactions look at them, and two for carts.

/// Made before the data.
pub const TABLES: &str = "
CREATE TABLE author (a_id int, a_fname text, a_lname text, a_mname text, a_dob date, a_bio text);
CREATE TABLE item (i_id int, i_title text, i_a_id int, i_pub_date timestamptz, i_publisher text, i_subject text, i_desc text, i_related int[],
  i_thumbnail text, i_image text, i_srp numeric(8,2), i_cost numeric(8,2), i_avail date, i_stock int, i_isbn text, i_page int, i_backing text);
CREATE TABLE address (addr_id serial, addr_street1 text, addr_street2 text, addr_city text, addr_state text, addr_zip text, addr_country text);
CREATE TABLE customer (c_id serial, c_uname text, c_passwd text, c_fname text, c_lname text, c_addr_id int, c_phone text, c_email text, c_since date,
  c_login timestamptz, c_expiration timestamptz, c_discount numeric(4,2), c_balance numeric(15,2), c_ytd_pmt numeric(15,2), c_data text);
CREATE TABLE orders (o_id serial, o_c_id int, o_date timestamptz, o_sub_total numeric(15,2), o_tax numeric(15,2), o_total numeric(15,2),
  o_ship_type text, o_ship_date timestamptz, o_addr_id int, o_status text);
CREATE TABLE order_line (ol_o_id int, ol_id int, ol_i_id int, ol_qty int, ol_amount numeric(15,2), ol_comments text);
CREATE TABLE cc_xacts (cx_o_id int, cx_type text, cx_num text, cx_name text, cx_expiry date, cx_amount numeric(15,2), cx_date timestamptz);
CREATE TABLE shopping_cart (sc_id serial, sc_time timestamptz);
CREATE TABLE shopping_cart_line (scl_sc_id int, scl_i_id int, scl_qty int);
";

/// Made after it.
pub const KEYS: &str = "
ALTER TABLE author ADD PRIMARY KEY (a_id);
ALTER TABLE item ADD PRIMARY KEY (i_id);
CREATE INDEX item_by_author ON item (i_a_id);
CREATE INDEX item_by_subject ON item (i_subject);
ALTER TABLE address ADD PRIMARY KEY (addr_id);
ALTER TABLE customer ADD PRIMARY KEY (c_id);
ALTER TABLE orders ADD PRIMARY KEY (o_id);
CREATE INDEX orders_of_customer ON orders (o_c_id, o_id);
ALTER TABLE order_line ADD PRIMARY KEY (ol_o_id, ol_id);
CREATE INDEX order_line_by_item ON order_line (ol_i_id, ol_o_id);
ALTER TABLE cc_xacts ADD PRIMARY KEY (cx_o_id);
ALTER TABLE shopping_cart ADD PRIMARY KEY (sc_id);
ALTER TABLE shopping_cart_line ADD PRIMARY KEY (scl_sc_id, scl_i_id);
SELECT setval('customer_c_id_seq', (SELECT max(c_id) FROM customer)), setval('address_addr_id_seq', (SELECT max(addr_id) FROM address)),
  setval('orders_o_id_seq', (SELECT max(o_id) FROM orders));
";

/// What must hold, as counts of what says otherwise.
pub const CHECKS: &[(&str, &str)] = &[
    (
        "1: an order costs what its lines cost",
        "SELECT count(*) FROM orders WHERE o_sub_total IS DISTINCT FROM (SELECT sum(ol_amount) FROM order_line WHERE ol_o_id = o_id)",
    ),
    (
        "2: an order was paid once, and all of it",
        "SELECT count(*) FROM orders LEFT JOIN cc_xacts ON cx_o_id = o_id WHERE cx_amount IS DISTINCT FROM o_total",
    ),
    (
        "3: what was paid and what was sold is of an order",
        "SELECT (SELECT count(*) FROM cc_xacts WHERE NOT EXISTS (SELECT FROM orders WHERE o_id = cx_o_id))
         + (SELECT count(*) FROM order_line WHERE NOT EXISTS (SELECT FROM orders WHERE o_id = ol_o_id))",
    ),
    (
        "4: lines of an order are numbered from 1 without gaps",
        "SELECT count(*) FROM (SELECT max(ol_id) AS last, count(*) AS lines FROM order_line GROUP BY ol_o_id) AS all_of WHERE last <> lines",
    ),
    (
        "5: everybody who ordered is a customer, and has an address",
        "SELECT (SELECT count(*) FROM orders WHERE NOT EXISTS (SELECT FROM customer WHERE c_id = o_c_id))
         + (SELECT count(*) FROM customer WHERE NOT EXISTS (SELECT FROM address WHERE addr_id = c_addr_id))",
    ),
    (
        "6: the stock is never below nothing",
        "SELECT count(*) FROM item WHERE i_stock < 0",
    ),
    (
        "7: what lies in a cart is there, and some of it",
        "SELECT count(*) FROM shopping_cart_line WHERE scl_qty < 1 OR NOT EXISTS (SELECT FROM shopping_cart WHERE sc_id = scl_sc_id)
         OR NOT EXISTS (SELECT FROM item WHERE i_id = scl_i_id)",
    ),
];
