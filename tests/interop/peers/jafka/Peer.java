import com.sohu.jafka.Jafka;
import com.sohu.jafka.api.FetchRequest;
import com.sohu.jafka.api.ProducerRequest;
import com.sohu.jafka.common.ErrorMapping;
import com.sohu.jafka.consumer.Consumer;
import com.sohu.jafka.consumer.ConsumerConfig;
import com.sohu.jafka.consumer.ConsumerConnector;
import com.sohu.jafka.consumer.MessageStream;
import com.sohu.jafka.consumer.SimpleConsumer;
import com.sohu.jafka.message.ByteBufferMessageSet;
import com.sohu.jafka.message.CompressionCodec;
import com.sohu.jafka.message.Message;
import com.sohu.jafka.message.MessageAndOffset;
import com.sohu.jafka.producer.Producer;
import com.sohu.jafka.producer.ProducerConfig;
import com.sohu.jafka.producer.ProducerData;
import com.sohu.jafka.producer.SyncProducer;
import com.sohu.jafka.producer.SyncProducerConfig;
import com.sohu.jafka.producer.serializer.StringDecoder;
import com.sohu.jafka.utils.Utils;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import org.xerial.snappy.SnappyInputStream;
import org.xerial.snappy.SnappyOutputStream;

/** Jafka's clients and broker behind the command line that all peers of the interop tests have. */
public class Peer {

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "produce": produce(args, CompressionCodec.NoCompressionCodec); break;
            case "produce-gzip": produce(args, CompressionCodec.GZIPCompressionCodec); break;
            case "multiproduce": multiproduce(args); break;
            case "fetch": fetch(args); break;
            case "multifetch": multifetch(args); break;
            case "offsets": offsets(args); break;
            case "produce-zk": produceByRegistry(args); break;
            case "join": join(args); break;
            case "snappy": snappy(); break;
            case "unsnappy": unsnappy(); break;
            case "broker": broker(args); break;
            default: throw new IllegalArgumentException(args[0]);
        }
    }

    /** HOST PORT TOPIC PARTITION: the lines of stdin, as one message set. */
    private static void produce(String[] args, CompressionCodec codec) throws Exception {
        SyncProducer producer = connect(args);
        producer.send(args[3], Integer.parseInt(args[4]), set(codec, readLines()));
        producer.close();
    }

    /** HOST PORT TOPIC PARTITION..: each line of stdin to every partition, in one request. */
    private static void multiproduce(String[] args) throws Exception {
        List<String> lines = readLines();
        List<ProducerRequest> requests = new ArrayList<ProducerRequest>();
        for (int i = 4; i < args.length; i++) {
            ByteBufferMessageSet set = set(CompressionCodec.NoCompressionCodec, lines);
            requests.add(new ProducerRequest(args[3], Integer.parseInt(args[i]), set));
        }
        SyncProducer producer = connect(args);
        producer.multiSend(requests);
        producer.close();
    }

    private static SyncProducer connect(String[] args) {
        Properties properties = new Properties();
        properties.put("host", args[1]);
        properties.put("port", args[2]);
        return new SyncProducer(new SyncProducerConfig(properties));
    }

    private static ByteBufferMessageSet set(CompressionCodec codec, List<String> lines) {
        Message[] messages = new Message[lines.size()];
        for (int i = 0; i < messages.length; i++) {
            messages[i] = new Message(lines.get(i).getBytes(StandardCharsets.UTF_8));
        }
        return new ByteBufferMessageSet(codec, messages);
    }

    /** HOST PORT TOPIC PARTITION OFFSET: one fetch; NEXT_OFFSET PAYLOAD of each message. */
    private static void fetch(String[] args) throws Exception {
        SimpleConsumer consumer = new SimpleConsumer(args[1], Integer.parseInt(args[2]));
        print(consumer.fetch(request(args[3], args[4], args[5])));
        consumer.close();
    }

    /** HOST PORT TOPIC (PARTITION OFFSET)..: one multifetch; a line "--" between the answers. */
    private static void multifetch(String[] args) throws Exception {
        SimpleConsumer consumer = new SimpleConsumer(args[1], Integer.parseInt(args[2]));
        List<FetchRequest> requests = new ArrayList<FetchRequest>();
        for (int i = 4; i < args.length; i += 2) {
            requests.add(request(args[3], args[i], args[i + 1]));
        }
        for (ByteBufferMessageSet set : consumer.multifetch(requests)) {
            print(set);
            System.out.println("--");
        }
        consumer.close();
    }

    private static FetchRequest request(String topic, String partition, String offset) {
        return new FetchRequest(topic, Integer.parseInt(partition), Long.parseLong(offset), 1 << 20);
    }

    private static void print(ByteBufferMessageSet set) {
        if (set.getErrorCode() != ErrorMapping.NoError) {
            throw new IllegalStateException(set.getErrorCode().name());
        }
        for (MessageAndOffset one : set) {
            String payload = Utils.toString(one.message.payload(), "UTF-8");
            System.out.println(one.offset + " " + payload);
        }
    }

    /** HOST PORT TOPIC PARTITION TIME MAX: the offsets, newest first. */
    private static void offsets(String[] args) throws Exception {
        SimpleConsumer consumer = new SimpleConsumer(args[1], Integer.parseInt(args[2]));
        long time = Long.parseLong(args[5]);
        int max = Integer.parseInt(args[6]);
        for (long offset : consumer.getOffsetsBefore(args[3], Integer.parseInt(args[4]), time, max)) {
            System.out.println(offset);
        }
        consumer.close();
    }

    /** ZOOKEEPER TOPIC [NAME=VALUE..]: each line of stdin on its own; text before a tab is a key. */
    private static void produceByRegistry(String[] args) throws Exception {
        Properties properties = settings(args, 3);
        properties.put("zk.connect", args[1]);
        properties.put("serializer.class", "com.sohu.jafka.producer.serializer.StringEncoder");
        Producer<String, String> producer =
                new Producer<String, String>(new ProducerConfig(properties));
        for (String line : readLines()) {
            String[] parts = line.split("\t");
            String key = parts.length > 1 ? parts[0] : null;
            List<String> data = Collections.singletonList(parts[parts.length - 1]);
            producer.send(new ProducerData<String, String>(args[2], key, data));
        }
        producer.close();
    }

    /** ZOOKEEPER GROUP TOPIC STREAMS [NAME=VALUE..]: payloads, until stdin ends. */
    private static void join(String[] args) throws Exception {
        Properties properties = settings(args, 5);
        properties.put("zk.connect", args[1]);
        properties.put("groupid", args[2]);
        final ConsumerConnector connector = Consumer.create(new ConsumerConfig(properties));
        int count = Integer.parseInt(args[4]);
        List<Thread> threads = new ArrayList<Thread>();
        for (final MessageStream<String> stream : connector
                .createMessageStreams(Collections.singletonMap(args[3], count), new StringDecoder())
                .get(args[3])) {
            Thread thread = new Thread() {
                @Override
                public void run() {
                    for (String payload : stream) {
                        System.out.println(payload);
                    }
                }
            };
            thread.start();
            threads.add(thread);
        }
        readLines();
        connector.close();
        System.exit(0);
    }

    /** PROPERTIES: a broker, until it is killed or stdin ends. */
    private static void broker(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.load(new FileInputStream(args[1]));
        Jafka broker = new Jafka();
        broker.start(properties, null, null);
        System.out.println(broker.getPort());
        readLines();
        broker.close();
        System.exit(0);
    }

    /** The snappy container that 0.7.2 writes for a line of hexadecimal digits. */
    private static void snappy() throws Exception {
        ByteArrayOutputStream container = new ByteArrayOutputStream();
        OutputStream output = new SnappyOutputStream(container);
        output.write(fromHex(readLines().get(0)));
        output.close();
        System.out.println(toHex(container.toByteArray()));
    }

    /** What 0.7.2 reads in a snappy container. */
    private static void unsnappy() throws Exception {
        byte[] container = fromHex(readLines().get(0));
        InputStream input = new SnappyInputStream(new ByteArrayInputStream(container));
        ByteArrayOutputStream data = new ByteArrayOutputStream();
        for (int one = input.read(); one >= 0; one = input.read()) {
            data.write(one);
        }
        System.out.println(toHex(data.toByteArray()));
    }

    private static byte[] fromHex(String text) {
        byte[] bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static String toHex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) {
            text.append(String.format("%02x", one));
        }
        return text.toString();
    }

    private static Properties settings(String[] args, int start) {
        Properties properties = new Properties();
        for (int i = start; i < args.length; i++) {
            String[] parts = args[i].split("=", 2);
            properties.put(parts[0], parts[1]);
        }
        return properties;
    }

    private static List<String> readLines() throws Exception {
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> lines = new ArrayList<String>();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            lines.add(line);
        }
        return lines;
    }
}
