import java.io.StringWriter;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;
import org.postgresql.util.PSQLException;

/** pgjdbc, on which DBeaver, Metabase and Tableau stand, over a lake: java -cp postgresql.jar JdbcSteps.java URL */
public class JdbcSteps {
    static final String ALL = "select device_id, window_start, value from gold.aggregates";

    static List<String> column(ResultSet rows, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        while (rows.next()) values.add(rows.getString(name));
        return values;
    }

    static long number(ResultSet rows) throws SQLException {
        rows.next();
        return rows.getLong(1);
    }

    static void check(boolean holds, Object shown) {
        if (!holds) throw new AssertionError(String.valueOf(shown));
    }

    static void work(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        check(column(m.getSchemas(), "TABLE_SCHEM").containsAll(List.of("bronze", "silver", "gold")), "schemas");
        check(column(m.getTables(null, "gold", "%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME").contains("aggregates"), "tables");
        check(column(m.getColumns(null, "gold", "aggregates", "%"), "TYPE_NAME").contains("timestamptz"), "columns");
        for (ResultSet rows : List.of(m.getCatalogs(), m.getTableTypes(), m.getTypeInfo(), m.getPrimaryKeys(null, "gold", "aggregates"), m.getImportedKeys(null, "gold", "aggregates"),
                m.getIndexInfo(null, "gold", "aggregates", false, true), m.getFunctions(null, "gold", "%"), m.getProcedures(null, "gold", "%"), m.getTablePrivileges(null, "gold", "aggregates")))
            while (rows.next()) rows.getString(1);
        long total = number(c.createStatement().executeQuery("select count(*) from gold.aggregates"));
        PreparedStatement some = c.prepareStatement("select count(*) from gold.aggregates where device_id <> ? and window_start >= ? and window_start < ? and coalesce(value, 0) > ?");
        for (int i = 0; i < 7; i++) { // the sixth is prepared on the server
            some.setString(1, "nobody");
            some.setTimestamp(2, Timestamp.from(Instant.parse("2000-01-01T00:00:00Z")));
            some.setObject(3, OffsetDateTime.parse("2036-01-06T00:00:00Z"));
            some.setDouble(4, -1e9);
            check(number(some.executeQuery()) == total, "parameters");
        }
        c.setAutoCommit(false);
        try (PreparedStatement all = c.prepareStatement(ALL)) {
            all.setFetchSize(1000);
            long n = 0;
            for (ResultSet rows = all.executeQuery(); rows.next(); n++) rows.getTimestamp(2);
            check(n == total, n);
        }
        c.commit();
        c.setAutoCommit(true);
        check(new CopyManager((BaseConnection) c).copyOut("copy (" + ALL + ") to stdout csv", new StringWriter()) == total, "copy");
        try (Statement slow = c.createStatement()) {
            slow.setQueryTimeout(1);
            slow.executeQuery("select count(*) from range(100000000) a, range(100000) b where a.range + b.range > 5");
            check(false, "no timeout");
        } catch (PSQLException e) {
            check(e.getSQLState().equals("57014"), e);
        }
        c.setSchema("silver");
        check(number(c.createStatement().executeQuery("select count(*) from readings")) > 0 && c.isValid(5), "schema");
    }

    public static void main(String[] arguments) throws Exception {
        java.net.URI url = java.net.URI.create(arguments[0]);
        String[] person = url.getUserInfo().split(":");
        for (String extra : new String[] {"", "&prepareThreshold=1&binaryTransfer=true", "&preferQueryMode=simple"})
            try (Connection c = DriverManager.getConnection("jdbc:postgresql://" + url.getHost() + ":" + url.getPort() + url.getPath() + "?user=" + person[0] + "&password=" + person[1] + extra)) {
                work(c);
            }
        System.out.println("DatabaseMetaData, parameters, fetch size, COPY, timeout, schema; binary and simple mode too");
    }
}
