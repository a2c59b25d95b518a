package main

import (
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/lib/pq"
)

// sessions are steps about what lasts as long as a session.
var sessions = []step{
	{"notices", func(_, _ *sql.Conn) interface{} {
		var heard list
		base, err := pq.NewConnector(fmt.Sprintf("host=%s sslmode=disable", os.Getenv("PGHOST")))
		must(err)
		db := sql.OpenDB(pq.ConnectorWithNoticeHandler(base, func(notice *pq.Error) {
			heard = append(heard, notice.Severity+" "+said(notice))
		}))
		_, err = db.Exec("DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'beware'; END $$")
		must(err)
		must(db.Close())
		return heard
	}},
	{"notifications", func(_, b *sql.Conn) interface{} {
		listener := pq.NewListener(fmt.Sprintf("host=%s sslmode=disable", os.Getenv("PGHOST")), time.Second, time.Second, nil)
		must(listener.Listen("news"))
		tx := begin(b)
		exec(tx, "NOTIFY news, 'first'")
		exec(tx, "SELECT pg_notify('news', $1)", "second")
		must(tx.Commit())
		first, second := <-listener.Notify, <-listener.Notify
		must(listener.Ping())
		must(listener.Unlisten("news"))
		must(listener.Close())
		return list{first.Channel, first.Extra, second.Extra}
	}},
	{"temporary tables", func(_, b *sql.Conn) interface{} {
		c, closeC := connect("")
		defer closeC()
		exec(c, "CREATE TEMP TABLE mine (i int); INSERT INTO mine VALUES (1), (2)")
		tx := begin(b)
		hidden := ask(tx, "SELECT to_regclass('mine')")
		must(tx.Commit())
		return list{hidden, ask(c, "SELECT count(*) FROM mine WHERE i > $1", 0)}
	}},
	{"advisory locks", func(_, _ *sql.Conn) interface{} {
		c, closeC := connect("")
		defer closeC()
		d, closeD := connect("")
		defer closeD()
		ask(c, "SELECT pg_advisory_lock($1)", 7)
		all := list{ask(d, "SELECT pg_try_advisory_lock(7)"), ask(c, "SELECT pg_advisory_unlock(7)")}
		return append(all, ask(d, "SELECT pg_try_advisory_lock(7)"))
	}},
	{"settings", func(_, b *sql.Conn) interface{} {
		read := "SELECT current_setting('TimeZone'), current_setting('DateStyle'), current_setting('work_mem'), current_setting('application_name'), timestamptz '2024-02-29 12:00 UTC'"
		c, closeC := connect("application_name=shop work_mem=5MB options='-c search_path=pg_catalog'")
		defer closeC()
		exec(c, "SET TimeZone TO 'Asia/Tokyo'")
		var all list
		for turn := 0; turn < 3; turn++ {
			tx := begin(b)
			all = append(all, ask(c, read), ask(tx, read))
			must(tx.Commit())
		}
		exec(c, "SET work_mem TO '7MB'")
		tx := begin(b)
		all = append(all, ask(c, read), ask(tx, read), ask(c, "SHOW search_path"), ask(tx, "SHOW search_path"))
		must(tx.Commit())
		return all
	}},
	{"sessions that end", func(a, b *sql.Conn) interface{} {
		db := open("dbname=nowhere")
		all := list{said(db.Ping())}
		must(db.Close())
		db = open("")
		_, err := db.Exec("SELECT pg_terminate_backend(pg_backend_pid())")
		all = append(all, said(err))
		_, err = db.Exec("SELECT 'a new one'")
		must(err)
		must(db.Close())
		return append(all, ask(a, "SELECT 'alive'"), ask(b, "SELECT 'alive'"))
	}},
}
