package decorum_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

func TestURLParts(t *testing.T) {
	for _, tt := range []struct{ url, origin, path, scheme, hostPort, host string }{
		{"https://example.com/", "https://example.com", "/", "https", "example.com", "example.com"},
		{"http://example.com:8181/a/b?c", "http://example.com:8181", "/a/b?c", "http",
			"example.com:8181", "example.com"},
		{"ftp://example.com/a:b/c", "ftp://example.com", "/a:b/c", "ftp", "example.com", "example.com"},
		{"https://example.com./?", "https://example.com.", "/?", "https", "example.com.", "example.com"},
		{"https://192.0.2.1:8443/x", "https://192.0.2.1:8443", "/x", "https", "192.0.2.1:8443", "192.0.2.1"},
		{"https://[2001:db8::1]/x", "https://[2001:db8::1]", "/x", "https", "[2001:db8::1]", "[2001:db8::1]"},
		{"https://[2001:db8::1]:8443/x", "https://[2001:db8::1]:8443", "/x", "https",
			"[2001:db8::1]:8443", "[2001:db8::1]"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			u := mustParse(t, tt.url)
			o := u.Origin()
			if o.String() != tt.origin || u.PathAndQuery() != tt.path || o.Scheme() != tt.scheme ||
				o.HostPort() != tt.hostPort || o.Host() != tt.host {
				t.Errorf("got origin %q, path %q, scheme %q, host and port %q, host %q",
					o, u.PathAndQuery(), o.Scheme(), o.HostPort(), o.Host())
			}
			if u.IsZero() || o.IsZero() {
				t.Error("a URL is zero")
			}
			if robots := o.RobotsURL(); robots != mustParse(t, tt.origin+"/robots.txt") {
				t.Errorf("robots.txt is at %q, which ParseURL does not make", robots)
			}
		})
	}
}

// TestLogsInJSON proves that URLs and origins appear as text in JSON logs.
func TestLogsInJSON(t *testing.T) {
	var out strings.Builder
	u := mustParse(t, "https://example.com:8443/a?b=c&d")
	slog.New(slog.NewJSONHandler(&out, nil)).Info("visited", "url", u, "origin", u.Origin())
	if want := `"url":"https://example.com:8443/a?b=c&d","origin":"https://example.com:8443"}`; !strings.HasSuffix(
		out.String(), want+"\n") {
		t.Errorf("the log says %s want %s", &out, want)
	}
}

// TestOriginScope proves that a robots.txt covers the URLs of its own origin and no other URLs.
func TestOriginScope(t *testing.T) {
	for _, tt := range []struct {
		name, robots, page string
		covered            bool
	}{
		{"LOC-03 same", "https://example.com/robots.txt", "https://example.com/", true},
		{"LOC-03 other host", "https://example.com/robots.txt", "https://other.example.com/", false},
		{"LOC-03 other scheme", "https://example.com/robots.txt", "http://example.com/", false},
		{"LOC-03 other port", "https://example.com/robots.txt", "https://example.com:8181/", false},
		{"LOC-04 folder", "https://example.com/robots.txt", "https://example.com/folder/file", true},
		{"LOC-05 bare domain", "https://www.example.com/robots.txt", "https://example.com/", false},
		{"LOC-05 deeper", "https://www.example.com/robots.txt", "https://shop.www.example.com/", false},
		{"LOC-07 IDN", "https://www.exämple.com/robots.txt", "https://www.xn--exmple-cua.com/", true},
		{"LOC-07 not without", "https://www.exämple.com/robots.txt", "https://www.example.com/", false},
		{"LOC-08 FTP", "ftp://example.com/robots.txt", "https://example.com/", false},
		{"LOC-09 address", "https://212.96.82.21/robots.txt", "https://212.96.82.21/x", true},
		{"LOC-09 name behind it", "https://212.96.82.21/robots.txt", "https://example.com/", false},
		{"LOC-10 standard port", "https://example.com:443/robots.txt", "https://example.com/", true},
		{"LOC-10 other port", "https://example.com:443/robots.txt", "https://example.com:444/", false},
		{"LOC-11 own port", "https://example.com:8181/robots.txt", "https://example.com:8181/", true},
		{"LOC-17 user information", "https://example.com/robots.txt", "HTTPS://User@Example.COM:443/x", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			robots, err := decorum.ParseURL(tt.robots)
			if err != nil {
				t.Fatal(err)
			}
			page, err := decorum.ParseURL(tt.page)
			if err != nil {
				t.Fatal(err)
			}
			if got := robots.Origin() == page.Origin(); got != tt.covered {
				t.Errorf("origins %q and %q: covered is %v, want %v", robots.Origin(), page.Origin(), got, tt.covered)
			}
			if page.Origin().RobotsURL() == robots != tt.covered {
				t.Errorf("the robots.txt of %q is %q", page, page.Origin().RobotsURL())
			}
		})
	}
}

func TestZeroValues(t *testing.T) {
	var u decorum.URL
	var o decorum.Origin
	if !u.IsZero() || u.String() != "" || u.PathAndQuery() != "" || u.Origin() != o {
		t.Errorf("the zero URL is %q with origin %q", u, u.Origin())
	}
	if !o.IsZero() || o.String() != "" || o.HostPort() != "" || o.Host() != "" || o.Scheme() != "" {
		t.Errorf("the zero Origin is %q: %q, %q, %q", o, o.Scheme(), o.HostPort(), o.Host())
	}
}

func TestPartsDoNotAllocate(t *testing.T) {
	u := mustParse(t, basePage)
	var n int
	if got := testing.AllocsPerRun(100, func() {
		o := u.Origin()
		n += len(u.PathAndQuery()) + len(o.Scheme()) + len(o.Host())
	}); got != 0 {
		t.Errorf("taking a URL apart allocates %v times", got)
	}
}

func TestLocation(t *testing.T) {
	for _, tt := range []struct {
		name     string
		status   int
		location string
		want     string // empty: no target
	}{
		{"absolute", http.StatusMovedPermanently, "https://other.example/x", "https://other.example/x"},
		{"relative", http.StatusFound, "../x", "https://example.com/dir/x"},
		{"without scheme", http.StatusSeeOther, "//other.example", "https://other.example/"},
		{"fragment of another page", http.StatusTemporaryRedirect, "/x#y", "https://example.com/x"},
		{"itself", http.StatusPermanentRedirect, "#", basePage},
		{"raw UTF-8", http.StatusFound, "/é", "https://example.com/%C3%A9"},
		{"raw Latin-1", http.StatusFound, "/\xe9", "https://example.com/%E9"},
		{"no header", http.StatusFound, "", ""},
		{"other scheme", http.StatusFound, "mailto:someone@example.com", ""},
		{"broken", http.StatusFound, "https://:80/", ""},
		{"no redirect", http.StatusOK, "/x", ""},
		{"created", http.StatusCreated, "/x", ""},
		{"not modified", http.StatusNotModified, "/x", ""},
		{"multiple choices", http.StatusMultipleChoices, "/x", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := decorum.Response{URL: mustParse(t, basePage), Status: tt.status, Header: http.Header{}}
			if tt.location != "" {
				r.Header.Set("Location", tt.location)
			}
			u, ok := r.Location()
			if u.String() != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", u, ok, tt.want)
			}
		})
	}
}

func TestErrorSaysWhatItKnows(t *testing.T) {
	for _, tt := range []struct {
		err  decorum.Error
		want string
	}{
		{decorum.Error{Op: "fetch", URL: basePage, Kind: decorum.Unreachable, Err: io.ErrUnexpectedEOF},
			"fetch " + basePage + ": unreachable: unexpected EOF"},
		{decorum.Error{Op: "fetch", URL: basePage, Kind: decorum.NotDue}, "fetch " + basePage + ": not due"},
		{decorum.Error{Op: "handle", Kind: decorum.Panicked}, "handle: callback panicked"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestErrorIsKindAndCause(t *testing.T) {
	var err error = &decorum.Error{Op: "fetch", Kind: decorum.Unreachable, Err: io.ErrUnexpectedEOF}
	if !errors.Is(err, decorum.Unreachable) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("kind or cause is not found")
	}
	if errors.Is(err, decorum.Disallowed) || errors.Is(err, io.EOF) {
		t.Error("another kind or cause is found")
	}
	if decorum.NotDue.Error() != "not due" {
		t.Error("a kind does not read as its name")
	}
	if err := error(&decorum.Error{Kind: decorum.NotDue}); !errors.Is(err, decorum.NotDue) {
		t.Error("kind is not found without a cause")
	}
}

func TestRetryAfterAndDrop(t *testing.T) {
	var retry decorum.HandlerRetryError
	if err := decorum.RetryAfter(time.Minute); !errors.As(err, &retry) || time.Duration(retry) != time.Minute {
		t.Errorf("RetryAfter says %v", err)
	} else if err.Error() != "retry after 1m0s" {
		t.Errorf("RetryAfter reads %q", err)
	}
	err := decorum.Drop("a duplicate")
	if !errors.Is(err, decorum.Dropped) || err.Error() != "handle: dropped: a duplicate" {
		t.Errorf("Drop says %v", err)
	}
}

func TestIsHTTP(t *testing.T) {
	for url, want := range map[string]bool{"http://a.test/": true, "https://a.test:81/": true, "ftp://http/": false} {
		u, err := decorum.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.Origin().IsHTTP(); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
	if (decorum.Origin{}).IsHTTP() {
		t.Error("the zero Origin is http")
	}
}
