package main

import (
	"crypto/md5"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lib/pq"
)

// statements are steps about values, statements and their names.
var statements = []step{
	{"several statements", func(a, b *sql.Conn) interface{} {
		exec(a, "CREATE TABLE t (i int PRIMARY KEY, s text); INSERT INTO t SELECT i, 's' || i FROM generate_series(0, 99) i")
		return list{ask(a, "SELECT 1; SELECT 'two', NULL; VALUES (3), (4)"), ask(b, "SELECT count(*) FROM t")}
	}},
	{"parameters", func(a, b *sql.Conn) interface{} {
		values := list{
			7, nil, "ñ'\\", pq.Array([]int64{1, 2}), pq.Array([]string{"x", "y\""}), time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC), "12345.000001",
			[]byte{0, 1}, true, 1.5,
		}
		query := "SELECT $1::int, $2::text, $3::text, $4::int[], $5::text[], $6::timestamptz, $7::numeric, $8::bytea, $9::bool, $10::float8"
		return list{ask(a, query, values...), ask(b, query, values...)}
	}},
	{"prepared across transactions", func(a, b *sql.Conn) interface{} {
		byKey := []*sql.Stmt{prepare(a, "SELECT s FROM t WHERE i = $1"), prepare(b, "SELECT s FROM t WHERE i = $1")}
		byText := []*sql.Stmt{prepare(a, "SELECT i FROM t WHERE s = $1"), prepare(b, "SELECT i FROM t WHERE s = $1")}
		var all list
		add := func(found list, err error) {
			must(err)
			all = append(all, found...)
		}
		for turn := 0; turn < 12; turn++ {
			first := turn % 2
			tx := begin([]*sql.Conn{a, b}[first])
			add(askPrepared(tx.Stmt(byKey[first]), turn))
			add(askPrepared(byText[1-first], fmt.Sprint("s", turn)))
			add(askPrepared(byKey[1-first], turn))
			must(tx.Commit())
		}
		for i := range byKey {
			must(byKey[i].Close())
			must(byText[i].Close())
		}
		return all
	}},
	{"one name, two texts", func(_, _ *sql.Conn) interface{} {
		c, closeC := connect("")
		defer closeC()
		d, closeD := connect("")
		defer closeD()
		var all list
		ofC, ofD := prepare(c, "SELECT 'c' || $1::int"), prepare(d, "SELECT 'd' || $1::text")
		for turn := 0; turn < 3; turn++ {
			for _, conn := range []*sql.Conn{c, d} {
				tx := begin(conn)
				one, err := askPrepared(ofC, turn)
				must(err)
				other, err := askPrepared(ofD, "other")
				must(err)
				all = append(all, one, other)
				must(tx.Commit())
			}
		}
		return all
	}},
	{"a changed table", func(a, _ *sql.Conn) interface{} {
		c, closeC := connect("")
		defer closeC()
		d, closeD := connect("")
		defer closeD()
		exec(a, "CREATE TABLE changing (i int); INSERT INTO changing VALUES (1)")
		ofC, ofD := prepare(c, "SELECT * FROM changing"), prepare(d, "SELECT * FROM changing")
		// Side by side, so that whatever runs it afterwards has it prepared.
		ofBoth := begin(c)
		besides := begin(d)
		one, err := askPrepared(ofBoth.Stmt(ofC))
		must(err)
		other, err := askPrepared(besides.Stmt(ofD))
		must(err)
		must(ofBoth.Commit())
		must(besides.Commit())
		exec(a, "ALTER TABLE changing ADD s text DEFAULT 'new'")
		_, err = askPrepared(ofC)
		again, errAgain := askPrepared(prepare(c, "SELECT * FROM changing"))
		must(errAgain)
		return list{one, other, said(err), again, ask(c, "SELECT * FROM changing WHERE i > $1", 0)}
	}},
	{"a pool", func(_, _ *sql.Conn) interface{} {
		db := open("")
		db.SetMaxOpenConns(6)
		db.SetMaxIdleConns(3)
		statement, err := db.Prepare("SELECT $1::int + 1")
		must(err)
		sums, group := make([]int64, 30), sync.WaitGroup{}
		for i := range sums {
			group.Add(1)
			go func(i int) {
				defer group.Done()
				tx, err := db.Begin()
				must(err)
				must(tx.Stmt(statement).QueryRow(i).Scan(&sums[i]))
				time.Sleep(time.Millisecond)
				must(tx.QueryRow(fmt.Sprintf("SELECT %d + $1::int8", i), sums[i]).Scan(&sums[i]))
				must(tx.Commit())
			}(i)
		}
		group.Wait()
		must(db.Close())
		return sums
	}},
	{"large values", func(a, b *sql.Conn) interface{} {
		large := strings.Repeat("0123456789", 300000)
		echoed := ask(a, "SELECT md5($1::text), $1::text", large)
		same := ask(b, "SELECT $1::text", large)[0] == large
		bytes := ask(b, "SELECT decode(repeat('00ff', 1500000), 'hex')")[0].(string)
		return list{echoed[0], echoed[1] == large, same, fmt.Sprintf("%x", md5.Sum([]byte(bytes)))}
	}},
	{"errors", func(a, b *sql.Conn) interface{} {
		var all list
		for _, query := range []string{
			"SELEC 1", "SELECT * FROM nowhere", "INSERT INTO t VALUES (1, 'again')", "SELECT 'x'::int", "SELECT 1; SELECT 1/0",
		} {
			all = append(all, failure(a, query))
		}
		_, err := b.PrepareContext(background, "SELECT $1 +")
		return append(all, said(err), failure(b, "SELECT 1/$1", 0), ask(b, "SELECT 1/$1::int", 1))
	}},
}
