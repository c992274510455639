"""What the tests of the doors for other tools share."""
import http.client


def send(collector, method, target, body=None, headers=None):
    """(status, headers, body) of the answer to a request over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", collector.http, timeout=30)
    connection.request(method, target, body, headers or {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer.headers, text
