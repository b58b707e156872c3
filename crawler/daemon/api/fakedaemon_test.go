package api

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
)

// Tokens of the tests.
const (
	operateToken = "a-token-that-may-operate"
	readToken    = "a-token-that-may-read"
)

// A script is a Daemon that says what a test wants to hear, and remembers what it
// was asked to do. With it the HTTP layer is tested, and nothing else.
type script struct {
	filled bool  // answers have something in every field; else nothing
	fail   error // of every call
	events []Event
	ready  error

	mu     sync.Mutex
	done   []string
	brakes []Brake
	urls   []string
	offer  func(string) error // called with each URL that is taken
}

func (d *script) did(what ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, strings.Join(what, " "))
	return d.fail
}

func (d *script) deeds() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.done...)
}

// say returns a T as the script wants it.
func say[T any](d *script) (T, error) {
	var v T
	if d.fail == nil && d.filled {
		fill(reflect.ValueOf(&v).Elem(), 0)
	}
	return v, d.fail
}

// fill puts something into everything that JSON shows of v.
func fill(v reflect.Value, depth int) {
	if t, ok := v.Addr().Interface().(*time.Time); ok {
		*t = time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), e)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth+1)
			}
		}
	case reflect.String:
		v.SetString("text")
		if v.Type() == reflect.TypeFor[State]() {
			v.SetString(string(Running))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Interface:
		v.Set(reflect.ValueOf("anything"))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(7 * time.Millisecond))
	}
}

func (d *script) Projects(context.Context) ([]Project, error) { return say[[]Project](d) }
func (d *script) Project(context.Context, string) (*Project, error) {
	p, err := sayPointer[Project](d)
	if p != nil {
		p.State = Running // no project is without
	}
	return p, err
}
func (d *script) ProjectFile(context.Context, string) ([]byte, error) {
	return []byte("project: a\n"), d.fail
}
func (d *script) PutProject(_ context.Context, name string, file []byte) (bool, error) {
	return name == "new", d.did("put", name, string(file))
}
func (d *script) DeleteProject(_ context.Context, name string) error { return d.did("delete", name) }
func (d *script) Do(_ context.Context, name string, a Action) error {
	return d.did(string(a), name)
}
func (d *script) Reload(context.Context) ([]Reloaded, error) {
	return []Reloaded{{Project: "a", Change: "none"}}, d.did("reload")
}
func (d *script) AddURLs(ctx context.Context, _ string, lines iter.Seq2[string, error]) (*Intake, error) {
	in := &Intake{}
	for line, err := range lines {
		if err != nil {
			return in, err
		}
		if strings.HasPrefix(line, "(") {
			in.NoURLs++
			continue
		}
		if d.offer != nil {
			if err := d.offer(line); err != nil {
				return in, err
			}
		} else {
			d.urls = append(d.urls, line)
		}
		in.Added++
	}
	return in, d.fail
}
func (d *script) Hosts(_ context.Context, _ string, q HostQuery) (*HostPage, error) {
	d.did("hosts", q.Search, q.State, q.Sort)
	p, err := sayPointer[HostPage](d)
	if p != nil {
		p.Total, p.Offset = 1234, q.Offset
	}
	return p, err
}
func (d *script) Host(context.Context, string, string) (*HostDetail, error) {
	return sayPointer[HostDetail](d)
}
func (d *script) Explain(context.Context, string, string) (*Explanation, error) {
	return sayPointer[Explanation](d)
}
func (d *script) Report(context.Context, string, ReportQuery) (*Report, error) {
	return sayPointer[Report](d)
}
func (d *script) Robots(_ context.Context, _, origin, version string) (*RobotsFile, error) {
	d.did("robots", origin, version)
	return sayPointer[RobotsFile](d)
}
func (d *script) Visits(context.Context, string) ([]LiveVisit, error) { return say[[]LiveVisit](d) }
func (d *script) Throughput(context.Context, string, bool) ([]Sample, error) {
	return say[[]Sample](d)
}
func (d *script) Events(ctx context.Context, name string) (iter.Seq[Event], error) {
	if d.fail != nil {
		return nil, d.fail
	}
	return func(yield func(Event) bool) {
		for _, e := range d.events {
			if !yield(e) {
				return
			}
		}
		<-ctx.Done()
	}, nil
}
func (d *script) Brakes(context.Context) ([]Brake, error) { return d.brakes, d.fail }
func (d *script) SetBrake(_ context.Context, b Brake) error {
	d.mu.Lock()
	d.brakes = append(d.brakes, b)
	d.mu.Unlock()
	return d.did("brake", b.Host)
}
func (d *script) LiftBrake(_ context.Context, host string) error { return d.did("lift", host) }
func (d *script) Ready(context.Context) error                    { return d.ready }
func (d *script) About() About                                   { a, _ := say[About](d); return a }

func (d *script) KeyDirectory(string) *botauth.Directory {
	k, err := botauth.GenerateKey()
	if err != nil {
		return nil
	}
	directory, _ := botauth.NewDirectory("https://bot.example.com", k)
	return directory
}

func sayPointer[T any](d *script) (*T, error) {
	v, err := say[T](d)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// newServer returns a server of d, with a page that says where it was called.
func newServer(t *testing.T, d *script, change ...func(*Config)) *Server {
	t.Helper()
	audit, err := OpenAudit(filepath.Join(t.TempDir(), "audit.jsonl"), AuditConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := audit.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := Config{
		Keys:    []Key{NewKey("operator", Operate, operateToken), NewKey("reader", Read, readToken)},
		Audit:   audit,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("decorum_queued 1\n")) }),
		Page: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			w.Write([]byte("page of " + CallerOf(r.Context()).Name))
		}),
	}
	for _, c := range change {
		c(&cfg)
	}
	return NewServer(d, cfg)
}

// A call is one request of a test.
type call struct {
	method, path, body string
	header             []string // names and values
}

// by adds a token.
func (c call) by(token string) call {
	if token != "" {
		c.header = append(c.header[:len(c.header):len(c.header)], "Authorization", "Bearer "+token)
	}
	return c
}

// with adds a header.
func (c call) with(name, value string) call {
	c.header = append(c.header[:len(c.header):len(c.header)], name, value)
	return c
}

// to makes the call.
func (c call) to(s http.Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequest(c.method, "http://127.0.0.1:8470"+c.path, strings.NewReader(c.body))
	for i := 0; i < len(c.header); i += 2 {
		r.Header.Add(c.header[i], c.header[i+1])
		if c.header[i] == "Host" {
			r.Host = c.header[i+1]
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// example returns a call of a route that makes sense.
func (rt *route) example() call {
	path := strings.NewReplacer("{project}", "books", "{host}", "example.com", "{origin}", "https%3A%2F%2Fexample.com").Replace(rt.path)
	c := call{method: rt.method, path: path}
	switch rt.name {
	case "explain":
		c.path += "?url=https%3A%2F%2Fexample.com%2F"
	case "putProject":
		c.body = "project: books\n"
	case "addURLs":
		c = c.with("Content-Type", "text/plain")
		c.body = "https://example.com/\n"
	case "brakeHost", "setBrake":
		c.body = `{"stop": true, "reason": "asked to"}`
	case "login":
		c = c.with("Content-Type", formTypes[0])
		c.body = "token=" + operateToken
	}
	return c
}

var errSecret = errors.New("open /home/secret/frontier.db: no space left on device")
