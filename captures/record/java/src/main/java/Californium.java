import java.net.InetSocketAddress;
import java.util.Iterator;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedSinglePskStore;

/** A server whose resource changes 200 times, and a client that observes or polls it. */
public final class Californium {
    public static void main(String[] arguments) throws Exception {
        CoapConfig.register();
        UdpConfig.register();
        DtlsConfig.register();
        App app = new App(arguments);
        if (app.sends()) {
            serve(app);
        } else {
            receive(app);
        }
        System.exit(0);
    }

    private static void serve(App app) throws Exception {
        Resource resource = new Resource(app);
        CoapServer server = new CoapServer(configuration(app));
        server.addEndpoint(endpoint(app, new InetSocketAddress(app.text("local"), app.number("port"))));
        server.add(resource);
        server.start();
        app.begin();
        if (app.text("mode").equals("fetch")) {
            resource.next = app.payloads().iterator();
            resource.answered.await(app.number("patience_s"), TimeUnit.SECONDS);
        } else {
            change(app, resource);
        }
        Thread.sleep(500);
        server.destroy();
    }

    private static void change(App app, Resource resource) throws Exception {
        for (String payload : app.payloads()) {
            resource.payload = payload;
            resource.changed();
            app.pause();
        }
    }

    private static void receive(App app) throws Exception {
        CoapClient client = new CoapClient((app.secured() ? "coaps" : "coap") + "://" + app.text("server") + "/Resource1");
        client.setEndpoint(endpoint(app, new InetSocketAddress(app.text("local"), 0)));
        client.setTimeout(60_000L);
        app.begin();
        if (!app.text("mode").isEmpty()) {
            poll(app, client);
        } else {
            client.observe(new Receiver(app));
            app.awaitLast();
        }
        client.getEndpoint().destroy();
    }

    private static void poll(App app, CoapClient client) throws Exception {
        for (int i = 0; i < app.number("stop"); i++) {
            long next = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(app.number("poll_ms"));
            CoapResponse response = client.get();
            if (response == null) {
                app.error("no response to request " + (i + 1));
            } else {
                app.received(response.getPayload());
            }
            TimeUnit.NANOSECONDS.sleep(next - System.nanoTime());
        }
    }

    private static Configuration configuration(App app) {
        Configuration configuration = Configuration.createStandardWithoutFile();
        configuration.set(DtlsConfig.DTLS_ROLE, DtlsConfig.DtlsRole.BOTH);
        configuration.setAsList(DtlsConfig.DTLS_CIPHER_SUITES, CipherSuite.TLS_PSK_WITH_AES_128_CCM_8);
        if (app.number("cid_bytes") > 0) {
            configuration.set(DtlsConfig.DTLS_CONNECTION_ID_LENGTH, app.number("cid_bytes"));
        }
        if (app.number("ack_timeout_ms") > 0) {
            configuration.set(CoapConfig.ACK_TIMEOUT, app.number("ack_timeout_ms"), TimeUnit.MILLISECONDS);
        }
        return configuration;
    }

    private static CoapEndpoint endpoint(App app, InetSocketAddress local) {
        Configuration configuration = configuration(app);
        CoapEndpoint.Builder builder = CoapEndpoint.builder().setConfiguration(configuration);
        if (!app.secured()) {
            return builder.setInetSocketAddress(local).build();
        }
        AdvancedSinglePskStore store = new AdvancedSinglePskStore(app.text("identity"), app.text("psk").getBytes());
        DtlsConnectorConfig dtls =
            DtlsConnectorConfig.builder(configuration).setAddress(local).setAdvancedPskStore(store).build();
        return builder.setConnector(new DTLSConnector(dtls)).build();
    }

    private static final class Resource extends CoapResource {
        private final App app;
        private volatile String payload = "";
        /** With a source, each GET takes the next payload. */
        private volatile Iterator<String> next;
        private final CountDownLatch answered;

        Resource(App app) {
            super("Resource1");
            this.app = app;
            answered = new CountDownLatch(app.number("count"));
            setObservable(true);
            setObserveType(app.number("confirm") == 1 ? Type.CON : Type.NON);
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            String now = next != null && next.hasNext() ? next.next() : payload;
            answered.countDown();
            app.sent(now);
            exchange.respond(ResponseCode.CONTENT, now);
        }
    }

    private record Receiver(App app) implements CoapHandler {
        @Override
        public void onLoad(CoapResponse response) {
            app.received(response.getPayload());
        }

        @Override
        public void onError() {
            app.error("observation failed");
        }
    }
}
