// prozess, kafka (node-kafka) and franz-kafka behind the command line that all peers have.
// The first argument names the client.
'use strict'

function readLines(done) {
  let text = ''
  process.stdin.setEncoding('utf8')
  process.stdin.on('data', (piece) => { text += piece })
  process.stdin.on('end', () => done(text.split('\n').slice(0, -1)))
}

function show(text) { process.stdout.write(`${text}\n`) }

function fail(error) {
  process.stderr.write(`${error && error.stack || error}\n`)
  process.exit(1)
}

const prozess = {
  produce(host, port, topic, partition) {
    const { Producer } = require('prozess')
    readLines((lines) => {
      const producer = new Producer(topic, { host, port: +port, partition: +partition })
      producer.on('error', fail)
      producer.on('connect', () => {
        producer.send(lines, (error) => error ? fail(error) : process.exit(0))
      })
      producer.connect()
    })
  },

  consumer(host, port, topic, partition, offset, use) {
    const { Consumer } = require('prozess')
    const consumer = new Consumer({ host, port: +port, topic, partition: +partition, offset })
    consumer.connect((error) => error ? fail(error) : use(consumer))
  },

  fetch(host, port, topic, partition, offset) {
    prozess.consumer(host, port, topic, partition, offset, (consumer) => {
      consumer.consume((error, messages) => {
        if (error) return fail(error)
        let next = +offset
        for (const message of messages) {
          next += message.toBytes().length
          show(`${next} ${message.payload}`)
        }
        process.exit(0)
      })
    })
  },

  offsets(host, port, topic, partition, time) {
    prozess.consumer(host, port, topic, partition, 0, (consumer) => {
      const ask = time === '-1' ? 'getLatestOffset' : 'getEarliestOffset'
      consumer[ask]((error, offset) => {
        if (error) return fail(error)
        show(offset.toString())
        process.exit(0)
      })
    })
  },
}

const nodeKafka = {
  produce(host, port, topic, partition) {
    const { Producer } = require('kafka')
    readLines((lines) => {
      const producer = new Producer({ host, port: +port, topic, partition: +partition })
      producer.on('error', fail)
      producer.connect(() => {
        producer.send(lines)
        producer.close()
      })
    })
  },

  fetch(host, port, topic, partition, offset) {
    const { Consumer } = require('kafka')
    const consumer = new Consumer({ host, port: +port })
    consumer.on('error', fail)
    consumer.on('message', (name, payload) => show(payload))
    consumer.on('lastmessage', () => process.exit(0))
    consumer.connect(() => {
      consumer.fetchTopic({ name: topic, partition: +partition, offset: +offset })
    })
  },
}

const franz = {
  open(options, use) {
    const Kafka = require('franz-kafka')
    const logger = { info() {}, error: console.error }
    const kafka = new Kafka(Object.assign({ queueTime: 50, maxFetchDelay: 100, logger }, options))
    kafka.connect(() => use(kafka))
  },

  send(kafka, topic, options) {
    readLines((lines) => {
      const stream = kafka.topic(topic, options)
      stream.on('error', fail)
      for (const line of lines) stream.write(line)
      setTimeout(() => process.exit(0), 1000) // nothing tells when it has sent them
    })
  },

  produce(host, port, topic, partition, compression) {
    franz.open({ brokers: [{ id: 0, host, port: +port }], compression }, (kafka) => {
      franz.send(kafka, topic, { partitions: { produce: [`0:${+partition + 1}`] } })
    })
  },

  'produce-gzip'(...args) { franz.produce(...args, 'gzip') },
  'produce-snappy'(...args) { franz.produce(...args, 'snappy') },

  // COUNT is how many messages there are: it never tells that it is at the end
  fetch(host, port, topic, partition, offset, count) {
    franz.open({ brokers: [{ id: 0, host, port: +port }] }, (kafka) => {
      const stream = kafka.topic(topic, {
        partitions: { consume: [`0-${partition}:${offset}`] },
      })
      stream.on('error', fail)
      let seen = 0
      stream.on('data', (payload) => {
        show(payload)
        seen += 1
        if (seen === +count) process.exit(0)
      })
      stream.resume()
    })
  },

  'produce-zk'(zookeeper, topic) {
    franz.open({ zookeeper: [zookeeper] }, (kafka) => franz.send(kafka, topic))
  },
}

const [client, action, ...args] = process.argv.slice(2)
const clients = { prozess, 'node-kafka': nodeKafka, franz }
clients[client][action](...args)
