package httpfetch_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// An h2Server speaks HTTP/2 frame by frame, so that it can break every rule. It answers the first
// request correctly, the second with misbehave, and all later requests correctly.
type h2Server struct {
	misbehave func(f *http2.Framer, c net.Conn, stream uint32)
	requests  atomic.Int32
}

func (s *h2Server) start(t *testing.T, cfg *tls.Config) string {
	t.Helper()
	cfg.NextProtos = []string{"h2"}
	l := tls.NewListener(testlisten.Listen(t, "127.0.0.1:0"), cfg)
	go testlisten.Serve(l, s.serveConn)
	return l.Addr().String()
}

func (s *h2Server) serveConn(c net.Conn) {
	defer c.Close()
	if _, err := io.CopyN(io.Discard, c, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	_ = f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if s.requests.Add(1) == 2 {
				s.misbehave(f, c, frame.StreamID)
			} else {
				writeH2Response(f, frame.StreamID, true)
			}
		}
	}
}

// writeH2Response sends a valid response header; end tells whether it ends the stream.
func writeH2Response(f *http2.Framer, stream uint32, end bool) {
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: encodeHeaderBlock(":status", "200"),
		EndHeaders: true, EndStream: end})
}

func encodeHeaderBlock(fields ...string) []byte {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return b.Bytes()
}

// repeatUntilError calls send until it fails, which it does when the crawl closes the connection.
func repeatUntilError(send func() error) {
	for send() == nil {
	}
}

func resetStream(code http2.ErrCode) func(*http2.Framer, net.Conn, uint32) {
	return func(f *http2.Framer, _ net.Conn, stream uint32) { _ = f.WriteRSTStream(stream, code) }
}

// TestHTTP2: when a server misbehaves on a kept-open HTTP/2 connection, the visit fails with a
// specific error and a bounded amount of memory, its request is not sent again, and the next visits
// succeed.
func TestHTTP2(t *testing.T) {
	ca := newAuthority(t)
	for _, tt := range []struct {
		name      string
		misbehave func(f *http2.Framer, c net.Conn, stream uint32)
		want      string // part of the error
	}{
		{"REFUSED_STREAM", resetStream(http2.ErrCodeRefusedStream), "closed the connection before it answered"},
		{"PROTOCOL_ERROR", resetStream(http2.ErrCodeProtocol), "closed the connection before it answered"},
		{"INTERNAL_ERROR", resetStream(http2.ErrCodeInternal), "INTERNAL_ERROR"},
		{"CANCEL", resetStream(http2.ErrCodeCancel), "CANCEL"},
		{"GOAWAY", func(f *http2.Framer, _ net.Conn, _ uint32) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) },
			"closed the connection before it answered"},
		{"GOAWAY with an error, and gone", func(f *http2.Framer, c net.Conn, stream uint32) {
			_ = f.WriteGoAway(stream, http2.ErrCodeEnhanceYourCalm, []byte("slow down"))
			c.Close()
		}, "ENHANCE_YOUR_CALM"},
		{"gone", func(_ *http2.Framer, c net.Conn, _ uint32) { c.Close() }, "EOF"},
		{"silence", func(*http2.Framer, net.Conn, uint32) {}, "no answer within 1s"},
		{"a body that does not end", func(f *http2.Framer, _ net.Conn, stream uint32) {
			writeH2Response(f, stream, false)
		}, "no whole answer within 2s"},
		{"another protocol", func(f *http2.Framer, _ net.Conn, stream uint32) {
			block := encodeHeaderBlock(":status", "101")
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true})
		}, "no answer within 1s"},
		{"a body reset", func(f *http2.Framer, _ net.Conn, stream uint32) {
			writeH2Response(f, stream, false)
			_ = f.WriteRSTStream(stream, http2.ErrCodeInternal)
		}, "INTERNAL_ERROR"},
		{"a body shorter than its Content-Length", func(f *http2.Framer, _ net.Conn, stream uint32) {
			block := encodeHeaderBlock(":status", "200", "content-length", "10")
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true})
			_ = f.WriteData(stream, true, []byte("spam "))
		}, "the connection ended after 5 of the 10 bytes"},
		{"settings without end", func(f *http2.Framer, _ net.Conn, _ uint32) {
			repeatUntilError(func() error {
				return f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 14})
			})
		}, "no answer within 1s"},
		{"pings without end", func(f *http2.Framer, _ net.Conn, _ uint32) {
			repeatUntilError(func() error { return f.WritePing(false, [8]byte{}) })
		}, "no answer within 1s"},
		{"a header without end", func(f *http2.Framer, _ net.Conn, stream uint32) {
			block := encodeHeaderBlock("x-spam", strings.Repeat("and eggs ", 100))
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream,
				BlockFragment: encodeHeaderBlock(":status", "200")})
			repeatUntilError(func() error { return f.WriteContinuation(stream, false, block) })
		}, "PROTOCOL_ERROR"},
		{"interim answers without end", func(f *http2.Framer, _ net.Conn, stream uint32) {
			repeatUntilError(func() error {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream,
					BlockFragment: encodeHeaderBlock(":status", "103"), EndHeaders: true})
			})
		}, "the header of the answer is longer than 16384 bytes"},
		{"a frame longer than can be", func(_ *http2.Framer, c net.Conn, stream uint32) {
			_, _ = c.Write([]byte{0xff, 0xff, 0xff, byte(http2.FrameHeaders), 4, 0, 0, 0, byte(stream)})
		}, "frame too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &h2Server{misbehave: tt.misbehave}
			address := s.start(t, ca.newServerConfig(t, "site.test", time.Now().Add(-time.Hour),
				time.Now().Add(time.Hour)))
			config := withShortTimeouts(offeringHTTP2(hostileConfig))
			fetcher := httpfetch.NewWithNetwork(connectingTo(t, config, address), nil,
				ca.certPool())
			visit := func() error {
				_, err := fetcher.Fetch(t.Context(), pageTicket(t, "https://site.test/"))
				return err
			}
			if err := visit(); err != nil {
				t.Fatal(err)
			}
			before := totalAllocated()
			if err := visit(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error that says %q", err, tt.want)
			}
			if used := totalAllocated() - before; used > 256<<20 { // the sum of all cases
				t.Errorf("%d MiB were allocated", used>>20)
			}
			// net/http may take a moment to see that its connection is gone.
			for end := time.Now().Add(10 * time.Second); visit() != nil; {
				if time.Now().After(end) {
					t.Fatal("no later visit to the host succeeds")
				}
			}
			if n := s.requests.Load(); n != 3 {
				t.Errorf("the server saw %d requests, want those of 3 visits", n)
			}
		})
	}
}
