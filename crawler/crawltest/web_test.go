package crawltest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inMemoryAndOverSockets runs a test in memory and over sockets.
func inMemoryAndOverSockets(t *testing.T, w func() *Web, test func(t *testing.T, w *Web, rt http.RoundTripper)) {
	t.Helper()
	t.Run("in memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			web := w()
			test(t, web, web)
		})
	})
	t.Run("over sockets", func(t *testing.T) {
		web := w()
		_, transport := startServer(t, web)
		test(t, web, transport)
	})
}

func smallWeb() *Web {
	counting := func(r PageRequest) Response { return Text(strings.Repeat("I", r.NthForURL)) }
	held := Text("the same")
	held.Header.Set("ETag", `"1"`)
	held.Header.Set("Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")
	packed := Text(strings.Repeat("press ", 100))
	packed.GzipIfAccepted = true
	return New(
		Site{Host: "a.example", Robots: StaticRobots(RobotsSpec{Response: Text("User-agent: *\nDisallow:\n")}),
			Pages: map[string]PageFunc{
				"/":      StaticPage(HTML("home")),
				"/q":     StaticPage(Text("any query")),
				"/q?x=1": StaticPage(Text("that query")),
				"/count": counting,
				"/held":  StaticPage(held),
				"/gzip":  StaticPage(packed),
				"/away":  StaticPage(Redirect(http.StatusFound, "/q")),
			}},
		Site{Host: "b.example", Fallback: func(r PageRequest) Response { return Text(r.Host + r.Path) }},
	)
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		name, url string
		header    []string
		status    int
		body      string
	}{
		{"page", "http://a.example/", nil, 200, "home"},
		{"https", "https://a.example/", nil, 200, "home"},
		{"port", "http://a.example:8080/", nil, 200, "home"},
		{"host in capitals", "http://A.Example/", nil, 200, "home"},
		{"path with its query goes first", "http://a.example/q?x=1", nil, 200, "that query"},
		{"path alone answers other queries", "http://a.example/q?x=2", nil, 200, "any query"},
		{"no such page", "http://a.example/none", nil, 404, "Not Found\n"},
		{"robots.txt", "http://a.example/robots.txt", nil, 200, "User-agent: *\nDisallow:\n"},
		{"no robots.txt", "http://b.example/robots.txt", nil, 404, "Not Found\n"},
		{"other pages", "http://b.example/x/y?z", nil, 200, "b.example/x/y?z"},
		{"redirect", "http://a.example/away", nil, 302, "Found\n"},
		{"same ETag", "http://a.example/held", []string{"If-None-Match", `"1"`}, 304, ""},
		{"other ETag", "http://a.example/held", []string{"If-None-Match", `"0"`}, 200, "the same"},
		{"same ETag, weak and among others", "http://a.example/held", []string{"If-None-Match", `"0", W/"1"`}, 304, ""},
		{"any ETag", "http://a.example/held", []string{"If-None-Match", "*"}, 304, ""},
		{"other ETag, same date", "http://a.example/held",
			[]string{"If-None-Match", `"0"`, "If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"}, 200, "the same"},
		{"later date", "http://a.example/held", []string{"If-Modified-Since", "Sat, 01 Jan 2000 00:00:01 GMT"}, 304,
			""},
		{"earlier date", "http://a.example/held", []string{"If-Modified-Since", "Fri, 31 Dec 1999 23:59:59 GMT"}, 200,
			"the same"},
		{"no date", "http://a.example/held", []string{"If-Modified-Since", "long ago"}, 200, "the same"},
		{"same date", "http://a.example/held", []string{"If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"}, 304, ""},
	}
	inMemoryAndOverSockets(t, smallWeb, func(t *testing.T, w *Web, rt http.RoundTripper) {
		for _, tt := range tests {
			if strings.HasPrefix(tt.url, "https") && rt != http.RoundTripper(w) {
				continue // the test server speaks plain HTTP
			}
			got, err := get(t.Context(), rt, tt.url, tt.header...)
			if err != nil || got.status != tt.status || got.body != tt.body {
				t.Errorf("%s: got %d %q, error %v; want %d %q", tt.name, got.status, got.body, err, tt.status, tt.body)
			}
		}
	})
}

func TestCountsRequestsByURL(t *testing.T) {
	inMemoryAndOverSockets(t, smallWeb, func(t *testing.T, _ *Web, rt http.RoundTripper) {
		for _, want := range []string{"I", "II", "III"} {
			if got, err := get(t.Context(), rt, "http://a.example/count"); got.body != want {
				t.Errorf("got %q, error %v; want %q", got.body, err, want)
			}
		}
	})
}

func TestGzip(t *testing.T) {
	plain := strings.Repeat("press ", 100)
	inMemoryAndOverSockets(t, smallWeb, func(t *testing.T, w *Web, rt http.RoundTripper) {
		got, err := get(t.Context(), rt, "http://a.example/gzip")
		if err != nil || got.body != plain || !got.res.Uncompressed || got.res.Header.Get("Content-Encoding") != "" {
			t.Errorf("without Accept-Encoding: got %d bytes, uncompressed %v, error %v",
				len(got.body), got.res.Uncompressed, err)
		}
		if sent := w.Log()[0].BodyBytes; sent == 0 || sent >= int64(len(plain)) {
			t.Errorf("%d bytes sent of a page of %d", sent, len(plain))
		}
		got, err = get(t.Context(), rt, "http://a.example/gzip", "Accept-Encoding", "gzip")
		if err != nil || got.body == plain || got.res.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("with Accept-Encoding: got %d bytes, error %v", len(got.body), err)
		}
		got, err = get(t.Context(), rt, "http://a.example/gzip", "Accept-Encoding", "identity")
		if err != nil || got.body != plain {
			t.Errorf("refused: got %d bytes, error %v", len(got.body), err)
		}
	})
}

func TestMethods(t *testing.T) {
	inMemoryAndOverSockets(t, smallWeb, func(t *testing.T, w *Web, rt http.RoundTripper) {
		for method, want := range map[string]int{"HEAD": 200, "POST": 405} {
			req, _ := http.NewRequestWithContext(t.Context(), method, "http://a.example/", strings.NewReader(""))
			res, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != want || method == "HEAD" && (len(body) > 0 || res.ContentLength != 4) {
				t.Errorf("%s: got %d, %d bytes of %d; want %d", method, res.StatusCode,
					len(body), res.ContentLength, want)
			}
		}
	})
}

func TestUnknownHost(t *testing.T) {
	w := smallWeb()
	_, err := get(t.Context(), w, "http://nowhere.example/")
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound || len(w.Log()) != 0 {
		t.Errorf("in memory: error %v, %d requests logged; want a name that is not found and none", err, len(w.Log()))
	}
	_, transport := startServer(t, w)
	if got, err := get(t.Context(), transport, "http://nowhere.example/"); got.status != http.StatusMisdirectedRequest {
		t.Errorf("over sockets: got %d, error %v", got.status, err)
	}
}

func TestLatency(t *testing.T) {
	slow := Text(strings.Repeat("x", 500_000))
	slow.HeaderDelay, slow.BodyDuration = 3*time.Second, 5*time.Second
	site := Site{Host: "a.example", Pages: map[string]PageFunc{"/slow": StaticPage(slow),
		"/empty": StaticPage(Response{})}}
	tests := []struct {
		name     string
		latency  Latency
		path     string
		min, max time.Duration
	}{
		{"none", Latency{}, "/empty", 0, 0},
		{"fixed", Latency{Base: time.Second}, "/empty", time.Second, time.Second},
		{"random", Latency{Base: time.Second, Jitter: time.Second, Seed: 7}, "/empty",
			time.Second + 1, 2*time.Second - 1},
		{"the page's own", Latency{}, "/slow", 8 * time.Second, 8 * time.Second},
		{"by size", Latency{PerMB: 4 * time.Second}, "/slow", 10 * time.Second, 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site.Latency = tt.latency
				var took [2]time.Duration
				for i := range took {
					w := New(site)
					began := time.Now()
					if _, err := get(t.Context(), w, "http://a.example"+tt.path); err != nil {
						t.Fatal(err)
					}
					took[i] = time.Since(began)
					if x := w.Log()[0]; x.End.Sub(x.Start) != took[i] {
						t.Errorf("took %v, logged %v", took[i], x.End.Sub(x.Start))
					}
				}
				if took[0] < tt.min || took[0] > tt.max || took[0] != took[1] {
					t.Errorf("took %v, then %v; want %v to %v, twice the same", took[0], took[1], tt.min, tt.max)
				}
			})
		})
	}
}

// A client that goes away ends the exchange at once.
func TestClientGoesAway(t *testing.T) {
	big := Text(strings.Repeat("x", 100_000))
	big.BodyDuration = time.Hour
	site := Site{Host: "a.example", Pages: map[string]PageFunc{"/big": StaticPage(big)}}
	tests := []struct {
		name  string
		leave func(res *http.Response, cancel func())
	}{
		{"closing the body", func(res *http.Response, _ func()) { res.Body.Close() }},
		{"cancelling, with the body left open", func(_ *http.Response, cancel func()) { cancel() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := New(site)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/big", nil)
				res, err := w.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Read(make([]byte, 1))
				gone := time.Now()
				tt.leave(res, cancel)
				synctest.Wait()
				time.Sleep(time.Minute)
				if x := w.Log()[0]; !x.Incomplete || !x.End.Equal(gone) || x.BodyBytes != 1 {
					t.Errorf("logged %+v, want it cut at %v after 1 byte", x, gone)
				}
				if _, err := res.Body.Read(make([]byte, 1)); err == nil {
					t.Error("the body can still be read")
				}
			})
		})
	}
}

func TestLogSurvivesAFile(t *testing.T) {
	var file bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		w := smallWeb()
		for _, path := range []string{"/robots.txt", "/held", "/away", "/none"} {
			if _, err := get(t.Context(), w, "http://a.example"+path, "If-None-Match", `"1"`); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second + 1)
		}
		if err := WriteLog(&file, w.Log()); err != nil {
			t.Fatal(err)
		}
		written := file.String()
		log, err := ReadLog(&file)
		if err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		if err := WriteLog(&again, log); err != nil || again.String() != written {
			t.Errorf("read and written again (error %v):\n%swant\n%s", err, again.String(), written)
		}
		if got, want := w.JudgeLog(log, JudgeOptions{}), w.Judge(JudgeOptions{}); got.String() != want.String() ||
			!reflect.DeepEqual(got.Hosts, want.Hosts) {
			t.Errorf("judged from the file:\n%v\nwant\n%v", got, want)
		}
	})
	if _, err := ReadLog(strings.NewReader("{\"method\":\"GET\"}\n{\"met")); err == nil ||
		!strings.Contains(err.Error(), "entry 2") {
		t.Errorf("a torn file: error %v, want one that names entry 2", err)
	}
}

func TestLogIsBounded(t *testing.T) {
	inMemoryAndOverSockets(t, smallWeb, func(t *testing.T, w *Web, rt http.RoundTripper) {
		w.MaxLogEntries = 2
		for _, path := range []string{"/robots.txt", "/", "/q"} {
			if got, err := get(t.Context(), rt, "http://a.example"+path); got.status != 200 {
				t.Errorf("%s: got %d, error %v", path, got.status, err)
			}
		}
		if r := w.Judge(JudgeOptions{}); len(w.Log()) != 2 || r.UnloggedRequests != 1 || r.OK() {
			t.Errorf("%d requests logged, %d not, OK %v; want 2, 1 and no verdict", len(w.Log()),
				r.UnloggedRequests, r.OK())
		}
	})
}

func TestConcurrentRequests(t *testing.T) {
	inMemoryAndOverSockets(t, DemoWeb, func(t *testing.T, w *Web, rt http.RoundTripper) {
		const clients, each = 8, 20
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				for i := range each {
					url := homeURL(demoHosts[client%5]) + strings.Repeat("x", i%3)
					if _, err := get(t.Context(), rt, url); err != nil {
						t.Error(err)
					}
					w.Log()
				}
			})
		}
		wg.Wait()
		if n := len(w.Log()); n != clients*each {
			t.Errorf("%d requests logged, want %d", n, clients*each)
		}
		for _, x := range w.Log() {
			if x.End.Before(x.Start) || x.Status == 0 {
				t.Errorf("logged %+v", x)
			}
		}
	})
}
