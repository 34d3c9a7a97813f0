// pgx and lib/pq, which Grafana's data source uses or used, over a lake: go run . URL
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Count the rows of an answer, each scanned into what the driver makes of it.
func count(rows *sql.Rows, err error) (n int) {
	check(err)
	defer rows.Close()
	types, err := rows.ColumnTypes()
	check(err)
	values, into := make([]any, len(types)), make([]any, len(types))
	for i := range values {
		into[i] = &values[i]
	}
	for ; rows.Next(); n++ {
		check(rows.Scan(into...))
	}
	check(rows.Err())
	return n
}

func work(driver string) {
	db, err := sql.Open(driver, os.Args[1]+"?sslmode=disable")
	check(err)
	defer db.Close()
	check(db.Ping())
	var total int
	check(db.QueryRow("select count(*) from gold.aggregates").Scan(&total))
	if n := count(db.Query("select * from gold.aggregates")); n != total {
		panic(n)
	}
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	some := "select device_id, window_start, value from gold.aggregates where device_id <> $1 and window_start >= $2 and coalesce(value, 0) > $3 and count > $4"
	if n := count(db.Query(some, "nobody", at, -1e9, -1)); n != total {
		panic(n)
	}
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
	check(err)
	prepared, err := tx.Prepare("select $1::int + 1")
	check(err)
	for i := range 3 {
		var next int
		check(prepared.QueryRow(i).Scan(&next))
		if next != i+1 {
			panic(next)
		}
	}
	check(tx.Commit())
	context, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := db.ExecContext(context, "select count(*) from range(100000000) a, range(100000) b where a.range + b.range > 5"); err == nil {
		panic("not cancelled")
	}
	check(db.Ping())
}

func main() {
	work("pgx")
	work("postgres")
	fmt.Println("all rows, parameters, a transaction, prepared, cancel")
}
