//! The statements of the five transactions, by number.

use crate::numbered::statements;

statements! {
    TAX = "SELECT w_tax FROM warehouse WHERE w_id = $1";
    NEXT_ORDER = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax";
    CUSTOMER_DISCOUNT = "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    ADD_ORDER = "INSERT INTO orders VALUES ($1, $2, $3, $4, now(), NULL, $5, $6)";
    ADD_NEW_ORDER = "INSERT INTO new_order VALUES ($1, $2, $3)";
    PRICES = "SELECT i_id, i_price::float8 FROM item WHERE i_id = ANY($1)";
    TAKE_STOCK = "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= wanted.quantity + 10 THEN s_quantity - wanted.quantity ELSE s_quantity - wanted.quantity + 91 END,
        s_ytd = s_ytd + wanted.quantity, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + (s_w_id <> $1)::int
      FROM unnest($2::int[], $3::int[], $4::int[]) AS wanted(warehouse, item, quantity)
      WHERE s_w_id = wanted.warehouse AND s_i_id = wanted.item RETURNING s_i_id, s_dist[$5]";
    ADD_LINES = "INSERT INTO order_line SELECT $1, $2, $3, line, item, supply, NULL, quantity, amount::numeric(8,2), about
      FROM unnest($4::int[], $5::int[], $6::int[], $7::int[], $8::float8[], $9::text[]) AS one(line, item, supply, quantity, amount, about)";
    PAY_WAREHOUSE = "UPDATE warehouse SET w_ytd = w_ytd + $2::float8::numeric(8,2) WHERE w_id = $1 RETURNING w_name";
    PAY_DISTRICT = "UPDATE district SET d_ytd = d_ytd + $3::float8::numeric(8,2) WHERE d_w_id = $1 AND d_id = $2 RETURNING d_name";
    CUSTOMERS_BY_NAME = "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first";
    PAY_CUSTOMER = "UPDATE customer SET c_balance = c_balance - $4::float8::numeric(8,2), c_ytd_payment = c_ytd_payment + $4::float8::numeric(8,2),
        c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE WHEN c_credit = 'BC' THEN left($5::text || c_data, 500) ELSE c_data END
      WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    ADD_HISTORY = "INSERT INTO history VALUES ($1, $2, $3, $4, $5, now(), $6::float8::numeric(8,2), $7)";
    CUSTOMER_BALANCE = "SELECT c_balance::float8, c_first, c_middle, c_last FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    LAST_ORDER = "SELECT o_id, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1";
    ORDER_LINES = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount::float8 FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";
    OLDEST_NEW = "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2
      AND no_o_id = (SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING no_o_id";
    GIVE_CARRIER = "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id";
    DELIVER_LINES = "WITH done AS (UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount)
      SELECT sum(ol_amount)::float8 FROM done";
    CHARGE_CUSTOMER = "UPDATE customer SET c_balance = c_balance + $4::float8::numeric(12,2), c_delivery_cnt = c_delivery_cnt + 1
      WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";
    NEXT_ORDER_NUMBER = "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2";
    /// Of the lines of orders from `$4` on and before `$5`. Numbers, as in clause 2.8.2, and not a
    /// join with the district: then the planner believes in a ninth of the district's lines instead
    /// of 200, and some day reads the whole stock for them.
    STOCK_LEVEL = "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
      WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $4 AND ol_o_id < $5 AND s_quantity < $3";
}
