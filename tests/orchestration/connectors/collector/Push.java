import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

/** Posts events with the defaults of java.net.http: the first request of a connection asks for HTTP/2. */
class Push {
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        for (int n = 0; n < 3; n++) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(args[0]))
                .header("Content-Type", "application/json")
                .POST(BodyPublishers.ofString("{\"java\": " + n + "}"))
                .build();
            var answer = client.send(request, BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.body());
        }
    }
}
