package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/lib/pq"
)

// transactions are steps about what lasts as long as a transaction or a command.
var transactions = []step{
	{"commit and rollback", func(a, b *sql.Conn) interface{} {
		tx := begin(a)
		exec(tx, "UPDATE t SET s = 'committed' WHERE i = 1")
		outside := ask(b, "SELECT s FROM t WHERE i = 1")
		must(tx.Commit())
		tx = begin(a)
		exec(tx, "UPDATE t SET s = $1 WHERE i = 1", "never")
		must(tx.Rollback())
		return list{outside, ask(b, "SELECT s FROM t WHERE i = 1")}
	}},
	{"savepoints", func(a, b *sql.Conn) interface{} {
		tx, err := a.BeginTx(background, &sql.TxOptions{Isolation: sql.LevelSerializable})
		must(err)
		exec(tx, "UPDATE t SET s = 'outer' WHERE i = 2")
		exec(tx, "SAVEPOINT within")
		all := list{failure(tx, "SELECT 1/$1", 0), failure(tx, "SELECT 1")}
		exec(tx, "ROLLBACK TO within")
		all = append(all, ask(tx, "SHOW transaction_isolation"))
		must(tx.Commit())
		return append(all, ask(b, "SELECT s FROM t WHERE i = 2"))
	}},
	{"a failed transaction", func(a, b *sql.Conn) interface{} {
		tx := begin(a)
		all := list{failure(tx, "SELECT 1/0"), failure(tx, "SELECT 1"), ask(b, "SELECT 'others work'")}
		// Instead of a commit the driver finds a rollback.
		return append(all, said(tx.Commit()), ask(a, "SELECT 'again'"))
	}},
	{"read only", func(a, b *sql.Conn) interface{} {
		tx, err := b.BeginTx(background, &sql.TxOptions{ReadOnly: true})
		must(err)
		all := list{failure(tx, "DELETE FROM t")}
		must(tx.Rollback())
		return append(all, ask(b, "SHOW transaction_read_only"))
	}},
	{"copied in", func(a, b *sql.Conn) interface{} {
		exec(a, "CREATE TABLE copied (i int, s text)")
		copies := func(rows int, last interface{}) error {
			tx := begin(a)
			statement := prepare(tx, pq.CopyIn("copied", "i", "s"))
			for i := 0; i < rows; i++ {
				if _, err := statement.Exec(i, "x"); err != nil {
					_ = tx.Rollback()
					return err
				}
			}
			_, err := statement.Exec(last, nil)
			if err == nil {
				_, err = statement.Exec()
			}
			if err == nil {
				must(statement.Close())
				return tx.Commit()
			}
			_ = tx.Rollback()
			return err
		}
		must(copies(20000, 20000))
		failed := said(copies(100, "no number"))
		return list{failed, ask(b, "SELECT count(*), count(s), sum(i) FROM copied"), ask(a, "SELECT 'again'")}
	}},
	{"copied out", func(a, b *sql.Conn) interface{} {
		// It cannot, says so, and cannot use the connection any more.
		db := open("")
		_, err := db.Query("COPY copied TO STDOUT")
		all := list{said(err)}
		must(db.Close())
		return append(all, ask(a, "SELECT 'works'"), ask(b, "SELECT 'works'"))
	}},
	{"cancelled", func(_, b *sql.Conn) interface{} {
		db := open("")
		ctx, cancel := context.WithCancel(background)
		go func() {
			waitSleepers(b, 1)
			cancel()
		}()
		_, err := db.ExecContext(ctx, "SELECT pg_sleep(50)")
		all := list{said(err)}
		ctx, cancel = context.WithTimeout(background, 300*time.Millisecond)
		defer cancel()
		_, err = db.ExecContext(ctx, "SELECT pg_sleep($1)", 50)
		// It has closed both connections by itself.
		_ = db.Close()
		waitSleepers(b, 0)
		return append(all, said(err), ask(b, "SELECT 'again'"))
	}},
	{"cursors", func(a, b *sql.Conn) interface{} {
		tx := begin(a)
		exec(tx, "DECLARE portal CURSOR FOR SELECT i FROM t WHERE i < 90 ORDER BY i")
		all := list{ask(tx, "FETCH 3 FROM portal"), ask(b, "SELECT 'between'"), ask(tx, "FETCH 2 FROM portal")}
		must(tx.Commit())
		return append(all, failure(a, "FETCH 1 FROM portal"))
	}},
	{"locks and settings", func(a, b *sql.Conn) interface{} {
		attempt := "SELECT pg_try_advisory_xact_lock($1)"
		tx := begin(a)
		all := list{ask(tx, attempt, 8), ask(b, attempt, 8)}
		exec(tx, "SET LOCAL work_mem TO '9MB'")
		all = append(all, ask(tx, "SHOW work_mem"), ask(b, "SHOW work_mem"))
		must(tx.Commit())
		return append(all, ask(b, attempt, 8), ask(a, "SHOW work_mem"))
	}},
	{"large objects", func(a, b *sql.Conn) interface{} {
		tx := begin(a)
		oid := ask(tx, "SELECT lo_from_bytea(0, $1)", []byte("0123456789"))[0]
		file := ask(tx, fmt.Sprintf("SELECT lo_open(%s, 393216)", oid))[0]
		ask(tx, "SELECT lo_lseek($1, 4, 0), lowrite($1, 'xy')", file)
		must(tx.Commit())
		return list{ask(b, fmt.Sprintf("SELECT lo_get(%s)", oid)), ask(a, fmt.Sprintf("SELECT lo_unlink(%s)", oid))}
	}},
}
