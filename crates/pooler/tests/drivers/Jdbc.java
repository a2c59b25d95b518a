// What pgjdbc sees of a PostgreSQL, one line a step: straight and through a gate the lines must be the same.
//
// Two connections, `a` and `b`, take turns, so that behind a gate neither stays with one server connection. What ties a client to its
// server connection has a connection of its own, which is closed behind it.

import java.io.*;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.*;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.copy.CopyIn;
import org.postgresql.copy.CopyManager;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

public class Jdbc {
    interface Step { Object run(Connection a, Connection b) throws Exception; }

    interface Call { void run() throws Exception; }

    interface Use { Object with(Connection c) throws Exception; }

    static Connection connect(String... more) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        for (int i = 0; i < more.length; i += 2) {
            properties.setProperty(more[i], more[i + 1]);
        }
        String place = System.getenv("PGHOST") + ":" + System.getenv("PGPORT");
        String database = properties.getProperty("database", System.getenv("PGDATABASE"));
        return DriverManager.getConnection("jdbc:postgresql://" + place + "/" + database, properties);
    }

    /** With a connection of its own, whose statements are prepared by name at once. */
    static Object with(Use use) throws Exception {
        try (Connection c = connect("prepareThreshold", "1")) {
            return use.with(c);
        }
    }

    static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    static List<Object> read(ResultSet rows) throws SQLException {
        List<Object> found = new ArrayList<>();
        while (rows.next()) {
            for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) {
                Object value = rows.getObject(i);
                found.add(value instanceof byte[] bytes ? Arrays.toString(bytes) : value);
            }
        }
        return found;
    }

    static List<Object> ask(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                statement.setObject(i + 1, values[i]);
            }
            return read(statement.executeQuery());
        }
    }

    /** In a transaction of `connection`. */
    static void inside(Connection connection, Call call) throws Exception {
        connection.setAutoCommit(false);
        call.run();
        connection.commit();
        connection.setAutoCommit(true);
    }

    /** What is said of a call that must fail: its SQLSTATE and its first line. */
    static String failure(Call call) throws Exception {
        try {
            call.run();
        } catch (SQLException error) {
            return error.getSQLState() + " " + error.getMessage().lines().findFirst().get();
        }
        throw new AssertionError("no error");
    }

    static void sleeps(Connection other) throws Exception {
        while (ask(other, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'").isEmpty()) {
            Thread.sleep(20);
        }
    }

    static Object severalStatements(Connection a, Connection b) throws Exception {
        execute(a, "CREATE TABLE t (i int PRIMARY KEY, s text); INSERT INTO t SELECT i, 's' || i FROM generate_series(0, 99) i");
        List<Object> found = new ArrayList<>();
        try (Statement statement = b.createStatement()) {
            boolean hasRows = statement.execute("SELECT 1; UPDATE t SET s = s; VALUES (3), (4)");
            while (hasRows || statement.getUpdateCount() >= 0) {
                found.add(hasRows ? read(statement.getResultSet()) : statement.getUpdateCount());
                hasRows = statement.getMoreResults();
            }
        }
        return found;
    }

    static Object simpleProtocol(Connection a, Connection b) throws Exception {
        try (Connection c = connect("preferQueryMode", "simple")) {
            return ask(c, "SELECT ?::int, ?::text, i FROM t WHERE i < 3 ORDER BY i", 7, "ñ'\\");
        }
    }

    static Object parameters(Connection a, Connection b) throws Exception {
        String sql = "SELECT ?::int, ?::text, ?::text, ?::int[], ?::date, ?::timestamptz, ?::numeric, ?::uuid, ?::bytea, ?::bool, ?::float8";
        List<Object> found = new ArrayList<>();
        for (Connection connection : List.of(a, b)) {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setInt(1, 7);
                statement.setNull(2, Types.VARCHAR);
                statement.setString(3, "ñ'\\");
                statement.setArray(4, connection.createArrayOf("int4", new Integer[] {1, null, 3}));
                statement.setObject(5, LocalDate.of(1999, 12, 31));
                statement.setObject(6, OffsetDateTime.parse("2024-02-29T12:00:00Z"));
                statement.setBigDecimal(7, new BigDecimal("12345678901234567890.000001"));
                statement.setObject(8, new UUID(0, 1));
                statement.setBytes(9, new byte[] {0, -1});
                statement.setBoolean(10, true);
                statement.setDouble(11, 1.5);
                // By the seventh time they are prepared by name, and come in binary.
                for (int turn = 0; turn < 7; turn++) {
                    found.add(turn % 3 == 0 ? read(statement.executeQuery()) : read(statement.executeQuery()).size());
                }
            }
        }
        return found;
    }

    static Object preparedAcrossTransactions(Connection a, Connection b) throws Exception {
        return with(c -> with(d -> {
            List<Object> found = new ArrayList<>();
            try (PreparedStatement ofC = c.prepareStatement("SELECT s FROM t WHERE i = ?");
                    PreparedStatement ofD = d.prepareStatement("SELECT i FROM t WHERE s = ?")) {
                for (int turn = 0; turn < 12; turn++) {
                    ofC.setInt(1, turn);
                    ofD.setString(1, "s" + turn);
                    // Both call theirs S_1, and have others besides.
                    inside(turn % 2 == 0 ? c : d, () -> {
                        found.addAll(read(ofC.executeQuery()));
                        found.addAll(read(ofD.executeQuery()));
                        found.addAll(ask(d, "SELECT s FROM t WHERE i = ?", 5));
                    });
                }
            }
            return found;
        }));
    }

    static Object aChangedTable(Connection a, Connection b) throws Exception {
        return with(c -> with(d -> {
            execute(a, "CREATE TABLE changing (i int); INSERT INTO changing VALUES (1)");
            List<Object> found = new ArrayList<>();
            for (String change : List.of("ADD s text DEFAULT 'new'", "ALTER i TYPE bigint", "DROP s")) {
                // Side by side, so that whatever runs it afterwards has it prepared.
                inside(c, () -> inside(d, () -> {
                    found.add(ask(c, "SELECT * FROM changing"));
                    found.add(ask(d, "SELECT * FROM changing"));
                }));
                execute(a, "ALTER TABLE changing " + change);
                // Inside a transaction it fails, outside the driver prepares once more.
                c.setAutoCommit(false);
                found.add(failure(() -> ask(c, "SELECT * FROM changing")));
                c.rollback();
                c.setAutoCommit(true);
                found.add(ask(c, "SELECT * FROM changing"));
                found.add(ask(d, "SELECT * FROM changing"));
            }
            return found;
        }));
    }

    static Object savepoints(Connection a, Connection b) throws Exception {
        return with(c -> {
            List<Object> found = new ArrayList<>();
            c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            inside(c, () -> {
                execute(c, "UPDATE t SET s = 'outer' WHERE i = 2");
                Savepoint savepoint = c.setSavepoint("within");
                found.add(failure(() -> ask(c, "SELECT 1/?", 0)));
                found.add(failure(() -> ask(c, "SELECT 1")));
                found.add(ask(b, "SELECT s FROM t WHERE i = 2"));
                c.rollback(savepoint);
            });
            found.add(ask(b, "SELECT s FROM t WHERE i = 2"));
            return found;
        });
    }

    static Object savepointsByItself(Connection a, Connection b) throws Exception {
        try (Connection c = connect("autosave", "always")) {
            List<Object> found = new ArrayList<>();
            inside(c, () -> {
                execute(c, "UPDATE t SET s = 'kept' WHERE i = 3");
                found.add(failure(() -> ask(c, "SELECT 1/?", 0)));
                found.add(ask(c, "SELECT 'goes on'"));
            });
            found.add(ask(b, "SELECT s FROM t WHERE i = 3"));
            return found;
        }
    }

    static Object rolledBack(Connection a, Connection b) throws Exception {
        a.setAutoCommit(false);
        execute(a, "UPDATE t SET s = 'never' WHERE i = 4");
        List<Object> found = new ArrayList<>(ask(b, "SELECT s FROM t WHERE i = 4"));
        a.rollback();
        found.addAll(ask(a, "SELECT s FROM t WHERE i = 4"));
        found.add(failure(() -> ask(a, "SELECT 1/?", 0)));
        found.add(failure(() -> ask(a, "SELECT 1")));
        a.commit();
        a.setAutoCommit(true);
        return found;
    }

    static Object batches(Connection a, Connection b) throws Exception {
        List<Object> found = new ArrayList<>();
        for (String rewrites : List.of("false", "true")) {
            try (Connection c = connect("reWriteBatchedInserts", rewrites);
                    PreparedStatement insert = c.prepareStatement("INSERT INTO t VALUES (?, ?)")) {
                for (int i = 0; i < 1000; i++) {
                    insert.setInt(1, 1000 + i + (rewrites.equals("true") ? 1000 : 0));
                    insert.setString(2, i % 2 == 0 ? null : "x".repeat(200));
                    insert.addBatch();
                }
                found.add(Arrays.stream(insert.executeBatch()).distinct().boxed().collect(Collectors.toList()));
                insert.setInt(1, 1);
                insert.setString(2, "again");
                insert.addBatch();
                found.add(failure(insert::executeBatch));
            }
        }
        found.add(ask(b, "SELECT count(*), sum(i), sum(length(s)) FROM t WHERE i >= 1000"));
        return found;
    }

    static Object copied(Connection a, Connection b) throws Exception {
        CopyManager ofA = a.unwrap(PGConnection.class).getCopyAPI();
        CopyManager ofB = b.unwrap(PGConnection.class).getCopyAPI();
        execute(a, "CREATE TABLE copied (i int, s text)");
        String rows = IntStream.range(0, 30000).mapToObj(i -> i + "\tx\n").collect(Collectors.joining());
        List<Object> found = new ArrayList<>();
        found.add(ofA.copyIn("COPY copied FROM STDIN", new StringReader(rows)));
        StringWriter out = new StringWriter();
        found.add(ofB.copyOut("COPY (SELECT * FROM copied WHERE i < 2 ORDER BY i) TO STDOUT (FORMAT csv)", out));
        ByteArrayOutputStream binary = new ByteArrayOutputStream();
        found.add(ofB.copyOut("COPY copied TO STDOUT (FORMAT binary)", binary));
        found.add(binary.size());
        found.add(ofA.copyIn("COPY copied FROM STDIN (FORMAT binary)", new ByteArrayInputStream(binary.toByteArray())));
        found.add(failure(() -> ofA.copyIn("COPY copied FROM STDIN", new StringReader(rows + "no number\tx\n" + rows))));
        CopyIn half = ofB.copyIn("COPY copied FROM STDIN");
        half.writeToCopy("1\tx\n".getBytes(StandardCharsets.UTF_8), 0, 4);
        half.cancelCopy();
        found.add(failure(() -> ofB.copyOut("COPY (SELECT 1/(5000-i) FROM generate_series(1, 9000) i) TO STDOUT", new StringWriter())));
        found.add(out.toString().lines().collect(Collectors.toList()));
        found.add(ask(a, "SELECT count(*), sum(i) FROM copied"));
        found.add(ask(b, "SELECT count(*), sum(i) FROM copied"));
        return found;
    }

    static Object cancelled(Connection a, Connection b) throws Exception {
        List<Object> found = new ArrayList<>();
        try (Statement statement = a.createStatement()) {
            Thread thread = new Thread(() -> {
                try {
                    sleeps(b);
                    statement.cancel();
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            });
            thread.start();
            found.add(failure(() -> statement.execute("SELECT pg_sleep(50)")));
            thread.join();
            statement.setQueryTimeout(1);
            found.add(failure(() -> statement.execute("SELECT pg_sleep(50)")));
        }
        found.add(ask(b, "SELECT 'unharmed'"));
        found.add(ask(a, "SELECT 'again'"));
        return found;
    }

    static Object notices(Connection a, Connection b) throws Exception {
        List<Object> heard = new ArrayList<>();
        try (Statement statement = a.createStatement()) {
            statement.execute("DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'beware'; END $$");
            for (SQLWarning one = statement.getWarnings(); one != null; one = one.getNextWarning()) {
                heard.add(one.getSQLState() + " " + one.getMessage());
            }
        }
        return heard;
    }

    static Object notifications(Connection a, Connection b) throws Exception {
        return with(c -> {
            execute(c, "LISTEN news");
            inside(b, () -> {
                execute(b, "NOTIFY news, 'first'");
                ask(b, "SELECT pg_notify('news', ?)", "second");
            });
            List<Object> heard = new ArrayList<>();
            while (heard.size() < 2) {
                for (PGNotification one : c.unwrap(PGConnection.class).getNotifications(10000)) {
                    heard.add(one.getName() + " " + one.getParameter());
                }
            }
            return heard;
        });
    }

    static Object temporaryTables(Connection a, Connection b) throws Exception {
        return with(c -> {
            List<Object> found = new ArrayList<>();
            execute(c, "CREATE TEMP TABLE mine (i int); INSERT INTO mine VALUES (1), (2)");
            inside(b, () -> found.addAll(ask(b, "SELECT to_regclass('mine')")));
            found.addAll(ask(c, "SELECT count(*) FROM mine WHERE i > ?", 0));
            return found;
        });
    }

    static Object advisoryLocks(Connection a, Connection b) throws Exception {
        List<Object> found = new ArrayList<>();
        with(c -> with(d -> {
            execute(c, "SELECT pg_advisory_lock(7)");
            found.addAll(ask(d, "SELECT pg_try_advisory_lock(7)"));
            found.addAll(ask(c, "SELECT pg_advisory_unlock(?)", 7L));
            return found.addAll(ask(d, "SELECT pg_try_advisory_lock(7)"));
        }));
        String attempt = "SELECT pg_try_advisory_xact_lock(8)";
        inside(a, () -> {
            found.addAll(ask(a, attempt));
            found.addAll(ask(b, attempt));
        });
        found.addAll(ask(b, attempt));
        return found;
    }

    static Object settings(Connection a, Connection b) throws Exception {
        String read = "SELECT current_setting('TimeZone'), current_setting('DateStyle'), current_setting('work_mem'),"
                + " current_setting('application_name'), current_setting('search_path')";
        List<Object> found = new ArrayList<>();
        try (Connection c = connect("ApplicationName", "shop", "options", "-c work_mem=5MB", "currentSchema", "pg_catalog,public")) {
            execute(c, "SET TimeZone TO 'Asia/Tokyo'");
            for (int turn = 0; turn < 3; turn++) {
                inside(b, () -> {
                    found.add(ask(c, read));
                    found.add(ask(b, read));
                });
            }
            c.setClientInfo("ApplicationName", "renamed");
            inside(b, () -> found.add(ask(c, read)));
            found.add(c.unwrap(PGConnection.class).getParameterStatus("TimeZone"));
            found.add(c.unwrap(PGConnection.class).getParameterStatus("application_name"));
            execute(c, "SET work_mem TO '7MB'");
            inside(b, () -> {
                found.add(ask(c, read));
                found.add(ask(b, read));
            });
        }
        return found;
    }

    static Object portals(Connection a, Connection b) throws Exception {
        List<Object> found = new ArrayList<>();
        inside(a, () -> {
            try (PreparedStatement statement = a.prepareStatement("SELECT i FROM t WHERE i < ? ORDER BY i")) {
                statement.setFetchSize(7);
                statement.setInt(1, 60);
                int sum = 0;
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        sum += rows.getInt(1);
                        if (rows.getInt(1) % 10 == 0) {
                            found.addAll(ask(b, "SELECT ?::int", sum));
                        }
                    }
                }
                found.add(sum);
            }
        });
        found.add(with(c -> {
            try (Statement statement = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY,
                    ResultSet.HOLD_CURSORS_OVER_COMMIT)) {
                return read(statement.executeQuery("SELECT generate_series(1, 5)"));
            }
        }));
        return found;
    }

    static Object largeObjects(Connection a, Connection b) throws Exception {
        List<Object> found = new ArrayList<>();
        with(c -> {
            LargeObjectManager manager = c.unwrap(PGConnection.class).getLargeObjectAPI();
            long[] oid = new long[1];
            inside(c, () -> {
                oid[0] = manager.createLO();
                LargeObject object = manager.open(oid[0], LargeObjectManager.READWRITE);
                object.write(new byte[300000]);
                object.write("the end".getBytes(StandardCharsets.UTF_8));
                object.seek(300000);
                found.add(new String(object.read(100), StandardCharsets.UTF_8));
                object.close();
            });
            found.addAll(ask(b, "SELECT length(lo_get(?))", oid[0]));
            inside(c, () -> manager.delete(oid[0]));
            return found.add(failure(() -> inside(c, () -> manager.delete(oid[0]))).replaceAll("object [0-9]+", "object"));
        });
        return found;
    }

    static Object functions(Connection a, Connection b) throws Exception {
        execute(a, "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n';"
                + " CREATE PROCEDURE two_commits() LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET s = 'first' WHERE i = 5; COMMIT;"
                + " UPDATE t SET s = 'second' WHERE i = 5; ROLLBACK; END $$");
        try (var call = b.prepareCall("{? = call twice(?)}")) {
            call.registerOutParameter(1, Types.INTEGER);
            call.setInt(2, 21);
            call.execute();
            execute(b, "CALL two_commits()");
            return List.of(call.getInt(1), ask(a, "SELECT s FROM t WHERE i = 5"));
        }
    }

    static Object largeValues(Connection a, Connection b) throws Exception {
        String large = IntStream.range(0, 550000).mapToObj(Integer::toString).collect(Collectors.joining()).substring(0, 3000000);
        List<Object> echoed = ask(a, "SELECT md5(?), ?::text", large, large);
        byte[] bytes = new byte[3000000];
        Arrays.fill(bytes, (byte) 200);
        try (PreparedStatement statement = b.prepareStatement("SELECT ?::bytea")) {
            statement.setBytes(1, bytes);
            ResultSet rows = statement.executeQuery();
            rows.next();
            return List.of(echoed.get(0), echoed.get(1).equals(large), Arrays.equals(rows.getBytes(1), bytes));
        }
    }

    static Object errors(Connection a, Connection b) throws Exception {
        List<Object> said = new ArrayList<>();
        for (String sql : List.of("SELEC 1", "SELECT * FROM nowhere", "INSERT INTO t VALUES (1, 'again')", "SELECT 'x'::int", "SELECT 1; SELECT 1/0")) {
            said.add(failure(() -> execute(a, sql)));
        }
        return said;
    }

    static Object sessionsThatEnd(Connection a, Connection b) throws Exception {
        List<Object> said = new ArrayList<>();
        said.add(failure(() -> connect("database", "nowhere").close()));
        try (Connection c = connect()) {
            said.add(failure(() -> execute(c, "SELECT pg_terminate_backend(pg_backend_pid())")));
            said.add(failure(() -> execute(c, "SELECT 1")));
        }
        said.add(ask(a, "SELECT 'alive'"));
        said.add(ask(b, "SELECT 'alive'"));
        return said;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Step> steps = new LinkedHashMap<>();
        steps.put("several statements", Jdbc::severalStatements);
        steps.put("simple protocol", Jdbc::simpleProtocol);
        steps.put("parameters", Jdbc::parameters);
        steps.put("prepared across transactions", Jdbc::preparedAcrossTransactions);
        steps.put("a changed table", Jdbc::aChangedTable);
        steps.put("savepoints", Jdbc::savepoints);
        steps.put("savepoints by itself", Jdbc::savepointsByItself);
        steps.put("rolled back", Jdbc::rolledBack);
        steps.put("batches", Jdbc::batches);
        steps.put("copied", Jdbc::copied);
        steps.put("cancelled", Jdbc::cancelled);
        steps.put("notices", Jdbc::notices);
        steps.put("notifications", Jdbc::notifications);
        steps.put("temporary tables", Jdbc::temporaryTables);
        steps.put("advisory locks", Jdbc::advisoryLocks);
        steps.put("settings", Jdbc::settings);
        steps.put("portals", Jdbc::portals);
        steps.put("large objects", Jdbc::largeObjects);
        steps.put("functions", Jdbc::functions);
        steps.put("large values", Jdbc::largeValues);
        steps.put("errors", Jdbc::errors);
        steps.put("sessions that end", Jdbc::sessionsThatEnd);
        try (Connection a = connect(); Connection b = connect()) {
            for (var step : steps.entrySet()) {
                System.out.println(step.getKey() + ": " + step.getValue().run(a, b));
            }
        }
    }
}
