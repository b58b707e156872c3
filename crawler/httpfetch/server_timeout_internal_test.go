package httpfetch

import (
	"net/http"
	"testing"
	"time"
)

// TestKeepAliveTimeout: the timeout of a Keep-Alive header is read wherever it stands; anything else is
// ignored.
func TestKeepAliveTimeout(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"timeout=5":                      5 * time.Second,
		"max=100, Timeout = 15":          15 * time.Second,
		"timeout=5, max=1000":            5 * time.Second,
		"timeout=2000000000":             maxAnnouncedTimeout,
		"timeout=99999999999999999999":   0,
		"timeout=-1":                     0,
		"timeout=soon":                   0,
		"timeout":                        0,
		"max=5":                          0,
		"":                               0,
		"timeout=0":                      0,
		"timeout=x, timeout=7, timeout=": 7 * time.Second,
	} {
		if got := keepAliveTimeout(http.Header{"Keep-Alive": {value}}); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// TestServerTimeout: how long a server is likely to keep a connection follows from its header, and from
// connections that it has closed and that were reused.
func TestServerTimeout(t *testing.T) {
	header := http.Header{"Keep-Alive": {"timeout=8"}}
	for _, tt := range []struct {
		name  string
		learn func(serverTimeout) serverTimeout
		want  time.Duration
	}{
		{"nothing is known", func(t serverTimeout) serverTimeout { return t }, time.Minute},
		{"header", func(t serverTimeout) serverTimeout { return t.afterResponse(header) }, 7 * time.Second},
		{"a later response without header", func(t serverTimeout) serverTimeout {
			return t.afterResponse(header).afterResponse(nil)
		}, 7 * time.Second},
		{"one close", func(t serverTimeout) serverTimeout { return t.afterClose(8 * time.Second) }, time.Minute},
		{"two closes", func(t serverTimeout) serverTimeout {
			return t.afterClose(time.Second).afterClose(8 * time.Second)
		}, 7 * time.Second},
		{"closes, and reuse before that time", func(t serverTimeout) serverTimeout {
			return t.afterClose(8 * time.Second).afterReuse(2 * time.Second).afterClose(8 * time.Second)
		}, 7 * time.Second},
		{"closes, and reuse after that time", func(t serverTimeout) serverTimeout {
			return t.afterClose(8 * time.Second).afterClose(8 * time.Second).afterReuse(9 * time.Second)
		}, time.Minute},
		{"a header that promises less than closes show", func(t serverTimeout) serverTimeout {
			return t.afterClose(16 * time.Second).afterClose(16 * time.Second).afterResponse(header)
		}, 7 * time.Second},
	} {
		if got := tt.learn(serverTimeout{}).likely(time.Minute); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
