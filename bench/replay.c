/* Sends requests that were made beforehand, a write each, and counts answers: a client that costs
 * next to nothing, as those are that the harness runs peers with.
 *
 * replay PORT FILE COUNT WINDOW: FILE holds frames, each behind its size; COUNT of them are sent,
 * from the start again where there are fewer. WINDOW is how many may be unanswered; 0: none is
 * answered at all.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIZE_BYTES = 4, RECEIVE_BYTES = 1 << 16 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint32_t size_at(const unsigned char *at)
{
    uint32_t size;
    memcpy(&size, at, SIZE_BYTES);
    return ntohl(size);
}

static unsigned char *load(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path);
    *length = (size_t)ftell(file);
    rewind(file);
    unsigned char *frames = malloc(*length);
    if (!frames || fread(frames, 1, *length, file) != *length)
        fail(path);
    fclose(file);
    return frames;
}

static void send_all(int sock, const unsigned char *data, size_t length)
{
    while (length) {
        ssize_t sent = write(sock, data, length);
        if (sent <= 0)
            fail("write");
        data += sent;
        length -= (size_t)sent;
    }
}

/* Takes what has come, and returns how many answers ended in it. */
static long receive(int sock)
{
    static unsigned char data[RECEIVE_BYTES], size[SIZE_BYTES];
    static size_t size_read, rest; /* of the answer that is not whole yet */
    ssize_t length = recv(sock, data, sizeof data, 0);
    if (length <= 0)
        fail("recv");
    long count = 0;
    for (size_t at = 0; at < (size_t)length;) {
        if (size_read < SIZE_BYTES) {
            size[size_read++] = data[at++];
            if (size_read == SIZE_BYTES)
                rest = size_at(size);
            continue;
        }
        size_t taken = (size_t)length - at < rest ? (size_t)length - at : rest;
        at += taken;
        rest -= taken;
        if (!rest) {
            size_read = 0;
            count++;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: replay PORT FILE COUNT WINDOW\n");
        return 2;
    }
    long count = atol(argv[3]), window = atol(argv[4]), unanswered = 0;
    size_t length, at = 0;
    unsigned char *frames = load(argv[2], &length);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int sock = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (sock < 0 || connect(sock, (struct sockaddr *)&address, sizeof address))
        fail("connect");
    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (long sent = 0; sent < count; sent++) {
        size_t frame_bytes = SIZE_BYTES + size_at(frames + at);
        send_all(sock, frames + at, frame_bytes);
        at = at + frame_bytes < length ? at + frame_bytes : 0;
        if (!window)
            continue;
        for (unanswered++; unanswered >= window;)
            unanswered -= receive(sock);
    }
    while (unanswered > 0)
        unanswered -= receive(sock);
    shutdown(sock, SHUT_WR);
    while (recv(sock, frames, 1, 0) > 0) /* until the broker has read all, and closes */
        ;
    return 0;
}
