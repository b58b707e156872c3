package crawler

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// TestFailureClasses: each failure has this class, and a page that fails in this way gets so many
// attempts with MaxAttempts 3.
func TestFailureClasses(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	call := func(name string, errno syscall.Errno) error { return os.NewSyscallError(name, errno) }
	answer := func(status int) *Visit { return &Visit{Response: &decorum.Response{Status: status}} }
	failed := func(err error) *Visit {
		return &Visit{Err: &decorum.Error{Op: "fetch", Kind: decorum.Unreachable, Err: fmt.Errorf("Get: %w", err)}}
	}
	const never = 0
	for _, tt := range []struct {
		name     string
		visit    *Visit
		want     FailureClass
		attempts int
	}{
		{"200", answer(200), 0, never},
		{"301", answer(301), 0, never},
		{"304", answer(304), 0, never},
		{"403", answer(403), 0, never},
		{"404", answer(404), 0, never},
		{"408", answer(408), Transient, 3},
		{"425", answer(425), Transient, 3},
		{"429", answer(429), Throttled, 10},
		{"500", answer(500), Transient, 3},
		{"501", answer(501), Transient, 3},
		{"502", answer(502), Transient, 3},
		{"503", answer(503), Throttled, 10},
		{"504", answer(504), Transient, 3},
		{"timeout", failed(os.ErrDeadlineExceeded), Transient, 3},
		{"reset", failed(&net.OpError{Op: "read", Err: call("read", syscall.ECONNRESET)}), Transient, 3},
		{"cut", failed(io.ErrUnexpectedEOF), Transient, 3},
		{"no answer", failed(io.EOF), Transient, 3},
		{"no route", failed(dial(call("connect", syscall.EHOSTUNREACH))), Transient, 3},
		{"no such name", failed(dial(&net.DNSError{Err: "no such host", IsNotFound: true})), Unreachable, 2},
		{"DNS is slow", failed(dial(&net.DNSError{Err: "i/o timeout", IsTimeout: true})), Transient, 3},
		{"refused", failed(dial(call("connect", syscall.ECONNREFUSED))), Unreachable, 2},
		{"certificate of another", failed(&tls.CertificateVerificationError{Err: x509.HostnameError{Host: "a.test"}}),
			Unreachable, 2},
		{"no TLS at all", failed(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}),
			Unreachable, 2},
		{"HTTP where HTTPS was expected", failed(http.ErrSchemeMismatch), Unreachable, 2},
		{"TLS refused by the server", failed(&net.OpError{Op: "remote error", Err: tls.AlertError(40)}), Unreachable,
			2},
		{"no HTTP", failed(errors.New(`malformed HTTP response "SSH-2.0-OpenSSH"`)), Malformed, 2},
		{"a damaged body", failed(fmt.Errorf("gzip: %w", decorum.Malformed)), Malformed, 2},
	} {
		f, is := visitFailureClass(tt.visit)
		switch {
		case is != (tt.attempts != never):
			t.Errorf("%s: a failure: %v", tt.name, is)
		case is && (f != tt.want || f.maxAttempts(3) != tt.attempts):
			t.Errorf("%s: %v, %d attempts; want %v, %d", tt.name, f, f.maxAttempts(3), tt.want, tt.attempts)
		}
	}
	if got := Unreachable.maxAttempts(1); got != 1 {
		t.Errorf("%d attempts where one is wanted", got)
	}
	if got := Throttled.maxAttempts(20); got != 20 {
		t.Errorf("%d attempts where 20 are wanted", got)
	}
}

// TestLastmodTrust: a sitemap may reschedule three pages of an origin until three claims are known,
// then all pages while at most half of the last eight claims were wrong, else one.
func TestLastmodTrust(t *testing.T) {
	for _, tt := range []struct {
		claims string // + correct, - wrong
		want   string // the quota before each claim, and at the end: 1, 3 or all (*)
	}{
		{"+++++", "333***"},
		{"---+++", "333111*"},
		{"--++--", "3331*11"},
		{"++++++++-----", "333**********1"},
		{"--------++++", "333111111111*"},
		{"--------+++-+++", "3331111111111***"},
	} {
		var r lastmodAccuracy
		got := ""
		for i := 0; ; i++ {
			switch n := r.maxReschedulesPerSitemap(); n {
			case 1, 3:
				got += fmt.Sprint(n)
			default:
				got += "*"
			}
			if i == len(tt.claims) {
				break
			}
			r = decodeLastmodAccuracy(r.withClaim(tt.claims[i] == '+').encode())
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.claims, got, tt.want)
		}
	}
	for _, note := range [][]byte{nil, {1}, {9, 255}, {1, 2, 3}} {
		if r := decodeLastmodAccuracy(note); r != (lastmodAccuracy{}) {
			t.Errorf("note %v is read as %v", note, r)
		}
	}
}
