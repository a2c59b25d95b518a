//! The statements of the fourteen interactions, by number.

use crate::numbered::statements;

statements! {
    CUSTOMER_NAME = "SELECT c_fname, c_lname, c_uname FROM customer WHERE c_id = $1";
    PROMOTED = "SELECT other.i_id, other.i_thumbnail FROM item AS one JOIN item AS other ON other.i_id = ANY(one.i_related) WHERE one.i_id = $1";
    NEW_PRODUCTS = "SELECT i_id, i_title, a_fname, a_lname FROM item JOIN author ON a_id = i_a_id WHERE i_subject = $1
      ORDER BY i_pub_date DESC, i_title LIMIT 50";
    LAST_ORDER_NUMBER = "SELECT max(o_id) FROM orders";
    /// Of the orders behind `$2`. A number, or the planner believes in a third of all lines and
    /// reads them all, more as there are more.
    BEST_SELLERS = "SELECT i_id, i_title, a_fname, a_lname, sold FROM (SELECT ol_i_id, sum(ol_qty) AS sold FROM order_line
        WHERE ol_o_id > $2 GROUP BY ol_i_id) AS recent
      JOIN item ON i_id = ol_i_id JOIN author ON a_id = i_a_id WHERE i_subject = $1 ORDER BY sold DESC, i_id LIMIT 50";
    DETAIL = "SELECT i_title, i_desc, i_srp::float8, i_cost::float8, i_stock, a_fname, a_lname FROM item JOIN author ON a_id = i_a_id WHERE i_id = $1";
    BY_AUTHOR = "SELECT i_id, i_title, a_fname, a_lname FROM author JOIN item ON i_a_id = a_id WHERE a_lname LIKE '%' || $1::text || '%' ORDER BY i_title LIMIT 50";
    BY_TITLE = "SELECT i_id, i_title, a_fname, a_lname FROM item JOIN author ON a_id = i_a_id WHERE i_title LIKE '%' || $1::text || '%' ORDER BY i_title LIMIT 50";
    BY_SUBJECT = "SELECT i_id, i_title, a_fname, a_lname FROM item JOIN author ON a_id = i_a_id WHERE i_subject = $1 ORDER BY i_title LIMIT 50";
    NEW_CART = "INSERT INTO shopping_cart (sc_time) VALUES (now()) RETURNING sc_id";
    PUT_IN_CART = "INSERT INTO shopping_cart_line AS line VALUES ($1, $2, $3)
      ON CONFLICT (scl_sc_id, scl_i_id) DO UPDATE SET scl_qty = line.scl_qty + excluded.scl_qty";
    TOUCH_CART = "UPDATE shopping_cart SET sc_time = now() WHERE sc_id = $1";
    CART = "SELECT i_id, i_title, i_cost::float8, scl_qty FROM shopping_cart_line JOIN item ON i_id = scl_i_id WHERE scl_sc_id = $1 ORDER BY i_id";
    LOG_IN = "UPDATE customer SET c_login = now(), c_expiration = now() + interval '2 hours' WHERE c_id = $1 RETURNING c_addr_id";
    ADD_ADDRESS = "INSERT INTO address (addr_street1, addr_street2, addr_city, addr_state, addr_zip, addr_country) VALUES ($1, $2, $3, 'ST', '12345', 'Nowhere')
      RETURNING addr_id";
    ADD_CUSTOMER = "INSERT INTO customer (c_uname, c_passwd, c_fname, c_lname, c_addr_id, c_phone, c_email, c_since, c_login, c_expiration, c_discount, c_balance,
        c_ytd_pmt, c_data) VALUES ($1, $1, $2, $3, $4, '0', '', now(), now(), now() + interval '2 hours', $5::float8::numeric(4,2), 0, 0, '') RETURNING c_id";
    LOCK_ITEMS = "SELECT i_id FROM shopping_cart_line JOIN item ON i_id = scl_i_id WHERE scl_sc_id = $1 ORDER BY i_id FOR UPDATE OF item";
    TAKE_STOCK = "UPDATE item SET i_stock = CASE WHEN i_stock - scl_qty >= 10 THEN i_stock - scl_qty ELSE greatest(i_stock - scl_qty + 21, 0) END
      FROM shopping_cart_line WHERE scl_sc_id = $1 AND i_id = scl_i_id";
    ADD_ORDER = "INSERT INTO orders (o_c_id, o_date, o_sub_total, o_tax, o_total, o_ship_type, o_ship_date, o_addr_id, o_status)
      SELECT c_id, now(), sub, round(sub * 0.0825, 2), sub + round(sub * 0.0825, 2) + 3 + lines, 'AIR', now() + interval '1 day', c_addr_id, 'PENDING'
      FROM (SELECT c_id, c_addr_id, count(*) AS lines, sum(round(scl_qty * i_cost * (1 - c_discount), 2)) AS sub
        FROM customer CROSS JOIN shopping_cart_line JOIN item ON i_id = scl_i_id WHERE c_id = $1 AND scl_sc_id = $2 GROUP BY 1, 2) AS cart RETURNING o_id";
    ADD_LINES = "INSERT INTO order_line SELECT $1, row_number() OVER (ORDER BY scl_i_id), scl_i_id, scl_qty, round(scl_qty * i_cost * (1 - c_discount), 2), ''
      FROM customer CROSS JOIN shopping_cart_line JOIN item ON i_id = scl_i_id WHERE c_id = $2 AND scl_sc_id = $3";
    PAY = "INSERT INTO cc_xacts SELECT o_id, 'VISA', '1234123412341234', 'somebody', now() + interval '2 years', o_total, now() FROM orders WHERE o_id = $1";
    EMPTY_CART = "DELETE FROM shopping_cart_line WHERE scl_sc_id = $1";
    LAST_ORDER = "SELECT o_id, o_total::float8, o_status FROM orders WHERE o_c_id = $1 ORDER BY o_id DESC LIMIT 1";
    ORDER_LINES = "SELECT ol_i_id, i_title, ol_qty, ol_amount::float8 FROM order_line JOIN item ON i_id = ol_i_id WHERE ol_o_id = $1";
    CHANGE_ITEM = "UPDATE item SET i_cost = $2::float8::numeric(8,2), i_pub_date = now(), i_image = $3, i_related = coalesce((SELECT array_agg(other) FROM (
        SELECT ol_i_id AS other FROM order_line WHERE ol_i_id <> $1 AND ol_o_id IN (SELECT ol_o_id FROM order_line
          WHERE ol_i_id = $1 AND ol_o_id > (SELECT max(o_id) - 10000 FROM orders)) GROUP BY ol_i_id ORDER BY sum(ol_qty) DESC, ol_i_id LIMIT 5) AS best), i_related)
      WHERE i_id = $1";
}
