// What node-postgres sees of a PostgreSQL, one line a step: straight and through a gate the lines must be the same.
//
// Two connections, `a` and `b`, take turns, so that behind a gate neither stays with one server connection. What ties a client to its
// server connection has a connection of its own, which is closed behind it.
'use strict'

const { createHash } = require('crypto')
const { Client, Pool } = require('pg')
const Cursor = require('pg-cursor')
const QueryStream = require('pg-query-stream')

async function connect(more = {}) {
  const client = new Client(more)
  await client.connect()
  return client
}

// With a connection of its own for as long as `use` takes.
async function connected(more, use) {
  const client = await connect(more)
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

async function rows(client, ...query) {
  return (await client.query(...query)).rows.map(Object.values)
}

async function row(client, ...query) {
  return (await rows(client, ...query))[0]
}

// What is said of a call that must fail: its SQLSTATE and its words.
async function failure(promise) {
  try {
    await promise
  } catch (error) {
    return [error.code, error.message]
  }
  throw new Error('no error')
}

async function inside(client, use) {
  await client.query('BEGIN')
  const found = await use()
  await client.query('COMMIT')
  return found
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

const steps = {
  async several_statements(a, b) {
    await a.query("CREATE TABLE t (i int PRIMARY KEY, s text); INSERT INTO t SELECT i, 's' || i FROM generate_series(0, 99) i")
    const several = await a.query("SELECT 1; UPDATE t SET s = s; SELECT 'two' AS x, NULL AS y; VALUES (3), (4)")
    return [several.map((one) => [one.command, one.rowCount, one.rows]), await row(b, 'SELECT count(*) FROM t')]
  },

  async parameters(a, b) {
    const values = [7, null, "ñ'\\", [1, null, 3], '1999-12-31', new Date(Date.UTC(2024, 1, 29, 12)), '12345.6', { k: [1, null] }, Buffer.from([0, 255]), true]
    const text = 'SELECT $1::int, $2::text AS b, $3::text AS c, $4::int[] AS d, $5::date AS e, $6::timestamptz AS f, $7::numeric AS g, $8::jsonb AS h, $9::bytea AS i, $10::bool AS j'
    return [await row(a, text, values), await row(b, { text, values, rowMode: 'array' })]
  },

  async results_in_binary(a) {
    return row(a, { text: "SELECT 7 AS a, 'text' AS b, 1.5::float8 AS c, NULL AS d", binary: true })
  },

  async prepared_across_transactions(a, b) {
    const key = (turn) => ({ name: 'by', text: 'SELECT s FROM t WHERE i = $1', values: [turn] })
    const text = (turn) => ({ name: 'by text', text: 'SELECT i FROM t WHERE s = $1', values: [`s${turn}`] })
    const found = []
    for (let turn = 0; turn < 12; turn++) {
      const [first, second] = turn % 2 ? [b, a] : [a, b]
      await inside(first, async () => {
        found.push(await row(first, key(turn)), await row(second, text(turn)), await row(second, key(turn)))
      })
    }
    return found.flat()
  },

  one_name_two_texts: () =>
    connected({}, (c) =>
      connected({}, async (d) => {
        const ofC = (turn) => row(c, { name: 'same', text: "SELECT 'c' || $1::int", values: [turn] })
        const ofD = (what) => row(d, { name: 'same', text: "SELECT 'd' || $1::text", values: [what] })
        const found = []
        for (let turn = 0; turn < 3; turn++) {
          await inside(c, async () => found.push(await ofC(turn), await ofD('other')))
          await inside(d, async () => found.push(await ofD('again'), await ofC(turn)))
        }
        return found.flat()
      })
    ),

  a_changed_table: (a) =>
    connected({}, (c) =>
      connected({}, async (d) => {
        await c.query('CREATE TABLE changing (i int); INSERT INTO changing VALUES (1)')
        const read = { name: 'read', text: 'SELECT * FROM changing' }
        // Side by side, so that whatever runs it afterwards has it prepared.
        await inside(c, () => inside(d, async () => [await row(c, read), await row(d, read)]))
        await c.query("ALTER TABLE changing ADD s text DEFAULT 'new'")
        const said = await failure(c.query(read))
        return [said, await row(c, { name: 'anew', text: 'SELECT * FROM changing' }), await row(a, read.text)]
      })
    ),

  async transactions(a, b) {
    await a.query('BEGIN')
    await a.query("UPDATE t SET s = 'committed' WHERE i = 1")
    const outside = await row(b, 'SELECT s FROM t WHERE i = 1')
    await a.query('COMMIT')
    await b.query("BEGIN; UPDATE t SET s = 'never' WHERE i = 1")
    await b.query('ROLLBACK')
    return [outside, await row(b, 'SELECT s FROM t WHERE i = 1')]
  },

  async savepoints(a, b) {
    const said = await inside(a, async () => {
      await a.query("UPDATE t SET s = 'outer' WHERE i = 2")
      await a.query('SAVEPOINT within')
      const said = [await failure(a.query('SELECT 1/$1::int', [0])), await failure(a.query('SELECT 1'))]
      await a.query('ROLLBACK TO within')
      return said
    })
    return [said, await row(b, 'SELECT s FROM t WHERE i = 2')]
  },

  async a_failed_transaction(a, b) {
    await a.query('BEGIN')
    const said = [await failure(a.query('SELECT 1/0')), await failure(a.query('SELECT $1::int', [1])), await row(b, "SELECT 'others work'")]
    return [said, (await a.query('COMMIT')).command, await row(a, 'SELECT 1')]
  },

  async queued(a, b) {
    const numbers = [...Array(50).keys()]
    const one = (client) => (number) => row(client, 'SELECT $1::int * 2', [number])
    const found = await Promise.all([...numbers.map(one(a)), ...numbers.map(one(b))])
    return found.flat().reduce((sum, number) => sum + number)
  },

  async a_pool() {
    const pool = new Pool({ max: 6 })
    const work = async (number) => {
      const client = await pool.connect()
      try {
        return await inside(client, async () => {
          await pause(number % 3)
          const same = await row(client, { name: 'mine', text: 'SELECT $1::int + 1', values: [number] })
          const other = await row(client, `SELECT ${number}::text`)
          return [...same, ...other]
        })
      } finally {
        client.release()
      }
    }
    const found = await Promise.all([...Array(30).keys()].map(work))
    await pool.end()
    return found
  },

  async copies_that_it_cannot_do(a, b) {
    await a.query('CREATE TABLE copied (i int)')
    const said = await failure(a.query('COPY copied FROM STDIN'))
    const out = await b.query('COPY (SELECT generate_series(1, 1000)) TO STDOUT')
    return [said, out.command, out.rowCount, await row(a, 'SELECT count(*) FROM copied'), await row(b, "SELECT 'works'")]
  },

  async cancelled(a, b) {
    const query = a.query('SELECT pg_sleep(50)')
    const said = failure(query)
    const sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    while ((await row(b, sleeps))[0] === '0') await pause(20)
    const other = new Client()
    // What it cancels is the query that its client runs now.
    other.cancel(a, a.activeQuery)
    return [await said, await row(b, "SELECT 'unharmed'"), await row(a, "SELECT 'again'")]
  },

  async notices(a) {
    const heard = []
    const hear = (notice) => heard.push([notice.severity, notice.code, notice.message])
    a.on('notice', hear)
    await a.query("DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'beware'; END $$")
    a.off('notice', hear)
    return heard
  },

  notifications: (a, b) =>
    connected({}, async (c) => {
      const heard = []
      const all = new Promise((resolve) => {
        c.on('notification', ({ channel, payload }) => heard.push([channel, payload]) === 2 && resolve())
      })
      await c.query('LISTEN news')
      await inside(b, async () => {
        await b.query("NOTIFY news, 'first'")
        await b.query("SELECT pg_notify('news', $1)", ['second'])
      })
      await all
      return heard
    }),

  temporary_tables: (a, b) =>
    connected({}, async (c) => {
      await c.query('CREATE TEMP TABLE mine (i int); INSERT INTO mine VALUES (1), (2)')
      const hidden = await inside(b, () => row(b, "SELECT to_regclass('mine')"))
      return [hidden, await row(c, 'SELECT count(*) FROM mine WHERE i > $1', [0])]
    }),

  advisory_locks: (a, b) =>
    connected({}, (c) =>
      connected({}, async (d) => {
        const found = [await row(c, 'SELECT pg_advisory_lock($1)', [7]), await row(d, 'SELECT pg_try_advisory_lock(7)')]
        found.push(await row(c, 'SELECT pg_advisory_unlock(7)'), await row(d, 'SELECT pg_try_advisory_lock(7)'))
        return found
      })
    ),

  async advisory_locks_of_a_transaction(a, b) {
    const attempt = 'SELECT pg_try_advisory_xact_lock(8)'
    const during = await inside(a, async () => [await row(a, attempt), await row(b, attempt)])
    return [during, await row(b, attempt)]
  },

  settings: (a, b) =>
    connected({ application_name: 'shop', options: '-c work_mem=5MB -c search_path=pg_catalog' }, async (c) => {
      const read = "SELECT current_setting('TimeZone') AS z, current_setting('DateStyle') AS d, current_setting('work_mem') AS w, current_setting('application_name') AS a, current_setting('search_path') AS s"
      await c.query("SET TimeZone TO 'Asia/Tokyo'; SET DateStyle TO German")
      const found = []
      for (let turn = 0; turn < 3; turn++) {
        await inside(b, async () => found.push(await row(c, read), await row(b, read)))
        await inside(c, async () => found.push(await row(b, { name: 'read', text: read }), await row(c, { name: 'read', text: read })))
      }
      await c.query("SET work_mem TO '7MB'")
      await inside(b, async () => found.push(await row(c, read), await row(b, read)))
      return found
    }),

  async cursors(a, b) {
    await a.query('BEGIN')
    const cursor = a.query(new Cursor('SELECT i FROM t WHERE i < $1 ORDER BY i', [90]))
    const found = [await cursor.read(3), await row(b, "SELECT 'between'"), await cursor.read(2)]
    await cursor.close()
    await a.query('COMMIT')
    let sum = 0
    for await (const { i } of a.query(new QueryStream('SELECT i FROM t WHERE i < 60', [], { batchSize: 7 }))) sum += i
    return [found, sum, await row(b, "SELECT 'behind'")]
  },

  async large_values(a, b) {
    const large = Array.from({ length: 550000 }, (_, i) => i).join('').slice(0, 3_000_000)
    const echoed = await row(a, 'SELECT md5($1) AS hash, $1::text AS same', [large])
    const [back] = await row(b, "SELECT decode(repeat('00ff', 1500000), 'hex')")
    return [echoed[0], echoed[1] === large, back.length, createHash('md5').update(back).digest('hex')]
  },

  async errors(a) {
    const said = []
    for (const text of ['SELEC 1', 'SELECT * FROM nowhere', "INSERT INTO t VALUES (1, 'again')", "SELECT 'x'::int", 'SELECT 1; SELECT 1/0']) {
      await a.query(text).catch((error) => said.push([error.code, error.position, error.constraint, error.routine]))
    }
    return said
  },

  async sessions_that_end(a, b) {
    const said = [await failure(connect({ database: 'nowhere' }))]
    const c = await connect()
    // Behind the server's own words a gate may have some.
    const gone = new Promise((resolve) => c.on('error', () => resolve('gone')))
    said.push(await failure(c.query('SELECT pg_terminate_backend(pg_backend_pid())')), await gone)
    return [said, await row(a, "SELECT 'alive'"), await row(b, "SELECT 'alive'")]
  },
}

async function main() {
  const [a, b] = [await connect(), await connect()]
  for (const [name, step] of Object.entries(steps)) {
    console.log(`${name}: ${JSON.stringify(await step(a, b))}`)
  }
  await a.end()
  await b.end()
}

main()
