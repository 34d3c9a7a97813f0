// node-postgres, Evidence's and Cube's drivers over a lake. NODE_PATH=... node node_steps.js TOOL URL
const assert = require("node:assert")
const [, , tool, url] = process.argv
const { hostname: host, port, username: user, password, pathname } = new URL(url)
const address = { host, port: +port, user, password, database: pathname.slice(1) }
const ALL = "select device_id, metric, window_start, value from gold.aggregates"

const tools = {
  async "node-postgres"() {
    const { Client, Pool } = require("pg"), Cursor = require("pg-cursor"), { to } = require("pg-copy-streams")
    const client = new Client(address)
    await client.connect()
    const total = +(await client.query("select count(*) as n from gold.aggregates")).rows[0].n
    const some = await client.query("select window_start, value from gold.aggregates where window_start >= $1 and value > $2 and metric = any($3)", [new Date("2026-01-05T00:00:00Z"), 0.5, ["temperature", "power"]])
    assert(some.rows.length > 0 && some.rows.every(row => row.window_start instanceof Date && row.value > 0.5))
    const prepared = { name: "sum", text: "select $1::int + $2::int as s" }
    for (const values of [[1, 2], [3, 4]]) assert.equal((await client.query({ ...prepared, values })).rows[0].s, values[0] + values[1])
    const cursor = client.query(new Cursor(ALL))
    let rows = 0
    for (let part; (part = await cursor.read(1000)).length;) rows += part.length
    assert.equal(rows, total)
    let lines = 0
    for await (const chunk of client.query(to(`copy (${ALL}) to stdout`))) lines += chunk.toString().split("\n").length - 1
    assert.equal(lines, total)
    await assert.rejects(client.query("select nope from gold.aggregates"), { code: "42703", position: "8" })
    await assert.rejects(client.query("create temp table t (a int)"), { code: "25006" })
    await client.end()
    const pool = new Pool({ ...address, max: 5 })
    assert.equal((await Promise.all([...Array(20)].map(() => pool.query("select 1")))).length, 20)
    await pool.end()
    return "parameters, prepared, cursor, COPY, errors, pool"
  },
  async "Evidence's driver"() {
    const { getRunner, testConnection } = require("@evidence-dev/postgres")
    assert.equal(await testConnection({ ...address, ssl: false }), true)
    const run = await getRunner({ ...address, ssl: false })
    const { rows, columnTypes } = await run(ALL, "aggregates.sql", 1000)
    let count = 0
    for await (const batch of rows()) count += batch.length
    assert(count > 1000)
    assert.deepEqual(columnTypes.map(column => [column.evidenceType, column.typeFidelity]), ["string", "string", "date", "number"].map(type => [type, "precise"]))
    return "test, all rows in batches, types"
  },
  async "Cube's driver"() {
    const { PostgresDriver } = require("@cubejs-backend/postgres-driver")
    const driver = new PostgresDriver(address)
    await driver.testConnection()
    assert((await driver.tablesSchema()).gold.aggregates.some(column => column.name === "window_start"))
    const hourly = `select date_trunc('hour', (window_start::timestamptz at time zone 'Europe/Berlin')) as hour, avg(value) as mean from gold.aggregates where window_start >= $1::timestamptz group by 1 order by 1 limit 10000`
    assert((await driver.query(hourly, ["2026-01-05T00:00:00Z"])).length > 1)
    const { rowStream, release } = await driver.stream(ALL, [], { highWaterMark: 1000 })
    let rows = 0
    for await (const _ of rowStream) rows++
    await release()
    assert(rows > 1000)
    await assert.rejects(driver.createSchemaIfNotExists("pre_aggregations"), /read/)
    await driver.release()
    return "test, schema, parameters, zones, stream; pre-aggregations refused"
  },
}
tools[tool]().then(done => { console.log(done); process.exit(0) }, error => { console.error(error); process.exit(1) })
