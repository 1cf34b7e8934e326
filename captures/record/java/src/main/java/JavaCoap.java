import static java.util.concurrent.CompletableFuture.completedFuture;

import com.mbed.coap.client.CoapClient;
import com.mbed.coap.exception.CoapException;
import com.mbed.coap.packet.CoapPacket;
import com.mbed.coap.packet.CoapRequest;
import com.mbed.coap.packet.CoapResponse;
import com.mbed.coap.packet.CoapTcpPacketSerializer;
import com.mbed.coap.packet.SeparateResponse;
import com.mbed.coap.server.CoapServer;
import com.mbed.coap.server.RouterService;
import com.mbed.coap.server.TcpCoapServer;
import com.mbed.coap.server.observe.NotificationsReceiver;
import com.mbed.coap.server.observe.ObserversManager;
import com.mbed.coap.transport.TransportContext;
import com.mbed.coap.transport.javassl.SocketClientTransport;
import com.mbed.coap.transport.udp.DatagramSocketTransport;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import javax.net.SocketFactory;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSocketFactory;

/** An observable resource over UDP or over TLS on TCP, and its observer. */
public final class JavaCoap {
    private static volatile String current = "";

    public static void main(String[] arguments) throws Exception {
        App app = new App(arguments);
        if (app.sends()) {
            serve(app);
        } else {
            receive(app);
        }
        System.exit(0);
    }

    private static void serve(App app) throws Exception {
        ObserversManager observers = new ObserversManager();
        RouterService.RouteBuilder routes = RouterService.builder().get("/Resource1", request -> {
            String payload = current;
            app.sent(payload);
            return completedFuture(observers.subscribe(request, CoapResponse.ok(payload)));
        });
        app.begin();
        CoapServer server = app.secured()
            ? TcpCoapServer.builder().transport(new Accepted(app.number("port"))).route(routes).build()
            : CoapServer.builder().transport(new DatagramSocketTransport(app.number("port"))).route(routes).build();
        boolean confirm = app.number("confirm") == 1;
        observers.init(notification -> server.outboundResponseService().apply(confirm ? notification : non(notification)));
        server.start();
        for (String payload : app.payloads()) {
            current = payload;
            observers.sendObservation("/Resource1", request -> {
                app.sent(payload);
                return completedFuture(CoapResponse.ok(payload).build());
            });
            app.pause();
        }
        Thread.sleep(500);
        server.stop();
    }

    private static SeparateResponse non(SeparateResponse notification) {
        return new SeparateResponse(notification.asResponse(), notification.getToken(), notification.getPeerAddress(),
            notification.getTransContext().with(TransportContext.NON_CONFIRMABLE, true));
    }

    private static void receive(App app) throws Exception {
        InetSocketAddress server = new InetSocketAddress(app.text("server").split(":")[0], app.number("port"));
        NotificationsReceiver receiver = (path, notification) -> {
            app.received(notification.getPayload().getBytes());
            return true;
        };
        app.begin();
        CoapClient client = app.secured()
            ? TcpCoapServer.builder().notificationsReceiver(receiver)
                .transport(new SocketClientTransport(server, SSLSocketFactory.getDefault(), false))
                .buildClient(server)
            : CoapServer.builder().notificationsReceiver(receiver)
                .transport(new DatagramSocketTransport(0)).buildClient(server);
        app.received(client.sendSync(CoapRequest.observe("/Resource1")).getPayload().getBytes());
        app.awaitLast();
    }

    /** The server's end of one TLS connection: the library brings only the client's. */
    private static final class Accepted extends SocketClientTransport {
        private final int port;

        Accepted(int port) {
            super(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), SocketFactory.getDefault(), false);
            this.port = port;
        }

        @Override
        protected void connect() throws IOException {
            try (ServerSocket listener = SSLServerSocketFactory.getDefault().createServerSocket(port)) {
                socket = listener.accept();
            }
            inputStream = new BufferedInputStream(socket.getInputStream());
            outputStream = new BufferedOutputStream(socket.getOutputStream());
            listener.onConnected((InetSocketAddress) socket.getRemoteSocketAddress());
        }

        @Override
        public void sendPacket0(CoapPacket packet) throws CoapException, IOException {
            CoapTcpPacketSerializer.writeTo(outputStream, packet);
            outputStream.flush();
        }
    }
}
