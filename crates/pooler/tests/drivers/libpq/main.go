// What lib/pq sees of a PostgreSQL, one line a step: straight and through a gate the lines must be the same.
//
// Two connections, a and b, take turns, so that behind a gate neither stays with one server connection. What ties a client to its server
// connection has a connection of its own, which is closed behind it.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lib/pq"
)

var background = context.Background()

type list = []interface{}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// open gives a pool of connections; more is appended to the connection string.
func open(more string) *sql.DB {
	place := fmt.Sprintf("host=%s port=%s user=%s dbname=%s sslmode=disable ", os.Getenv("PGHOST"), os.Getenv("PGPORT"), os.Getenv("PGUSER"), os.Getenv("PGDATABASE"))
	db, err := sql.Open("postgres", place+more)
	must(err)
	return db
}

// connect gives one connection of a pool of its own.
func connect(more string) (*sql.Conn, func()) {
	db := open(more)
	conn, err := db.Conn(background)
	must(err)
	return conn, func() { must(conn.Close()); must(db.Close()) }
}

type asker interface {
	QueryContext(ctx context.Context, query string, args ...interface{}) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...interface{}) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

func exec(on asker, query string, args ...interface{}) int64 {
	result, err := on.ExecContext(background, query, args...)
	must(err)
	count, err := result.RowsAffected()
	must(err)
	return count
}

func scan(rows *sql.Rows) (found list, err error) {
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		columns, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			values, places := make(list, len(columns)), make(list, len(columns))
			for i := range values {
				places[i] = &values[i]
			}
			if err := rows.Scan(places...); err != nil {
				return nil, err
			}
			for _, value := range values {
				if bytes, is := value.([]byte); is {
					value = string(bytes)
				}
				if moment, is := value.(time.Time); is {
					value = moment.Format(time.RFC3339)
				}
				found = append(found, value)
			}
		}
	}
	return found, rows.Err()
}

func try(on asker, query string, args ...interface{}) (list, error) {
	rows, err := on.QueryContext(background, query, args...)
	if err != nil {
		return nil, err
	}
	return scan(rows)
}

func ask(on asker, query string, args ...interface{}) list {
	found, err := try(on, query, args...)
	must(err)
	return found
}

func askPrepared(on *sql.Stmt, args ...interface{}) (list, error) {
	rows, err := on.Query(args...)
	if err != nil {
		return nil, err
	}
	return scan(rows)
}

// said gives the SQLSTATE and the words of what must be an error.
func said(err error) string {
	var of *pq.Error
	if errors.As(err, &of) {
		return string(of.Code) + " " + of.Message
	}
	if err == nil {
		panic("no error")
	}
	return err.Error()
}

func failure(on asker, query string, args ...interface{}) string {
	_, err := try(on, query, args...)
	return said(err)
}

func begin(conn *sql.Conn) *sql.Tx {
	tx, err := conn.BeginTx(background, nil)
	must(err)
	return tx
}

func prepare(on asker, query string) *sql.Stmt {
	statement, err := on.PrepareContext(background, query)
	must(err)
	return statement
}

// waitSleepers waits until so many sessions sleep.
func waitSleepers(other asker, count int) {
	for len(ask(other, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")) != count {
		time.Sleep(20 * time.Millisecond)
	}
}

type step struct {
	name string
	run  func(a, b *sql.Conn) interface{}
}

func main() {
	a, closeA := connect("")
	b, closeB := connect("binary_parameters=yes")
	for _, steps := range [][]step{statements, transactions, sessions} {
		for _, step := range steps {
			found := fmt.Sprint(step.run(a, b))
			fmt.Printf("%s: %s\n", step.name, strings.ReplaceAll(found, "\n", "\\n"))
		}
	}
	closeA()
	closeB()
}
