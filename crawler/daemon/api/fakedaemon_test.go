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
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// The tokens of the tests.
const (
	operateToken = "a-token-that-may-operate"
	readToken    = "a-token-that-may-read"
)

// A fakeDaemon is a Daemon that returns the answers that a test sets, and records its calls. Tests
// use it to test the HTTP layer alone.
type fakeDaemon struct {
	fillsFields bool  // answers have a value in every field; false: answers are empty
	err         error // the error of every call
	events      []Event
	readyErr    error

	mu           sync.Mutex
	calls        []string
	brakes       []Brake
	urls         []string
	streamErr    error              // the error of a stream, after its values
	streamLength int                // the number of values of a stream; 0: one
	onURL        func(string) error // called with each URL that AddURLs reads
}

func (d *fakeDaemon) recordCall(words ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, strings.Join(words, " "))
	return d.err
}

func (d *fakeDaemon) recordedCalls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.calls...)
}

// fakeAnswer returns an empty T, or one with all fields filled, as d.fillsFields says, and d.err.
func fakeAnswer[T any](d *fakeDaemon) (T, error) {
	var v T
	if d.err == nil && d.fillsFields {
		fillValue(reflect.ValueOf(&v).Elem(), 0)
	}
	return v, d.err
}

// fillValue sets every field of v that JSON shows.
func fillValue(v reflect.Value, depth int) {
	if t, ok := v.Addr().Interface().(*time.Time); ok {
		*t = time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fillValue(v.Elem(), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), depth+1)
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		fillValue(e, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), e)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillValue(v.Field(i), depth+1)
			}
		}
	case reflect.String:
		v.SetString("text")
		if v.Type() == reflect.TypeFor[ProjectState]() {
			v.SetString(string(StateRunning))
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

func (d *fakeDaemon) Projects(context.Context) ([]Project, error) { return fakeAnswer[[]Project](d) }
func (d *fakeDaemon) Project(context.Context, string) (*Project, error) {
	p, err := fakeAnswerPointer[Project](d)
	if p != nil {
		p.State = StateRunning // every project has a state
	}
	return p, err
}
func (d *fakeDaemon) ReadProjectFile(context.Context, string) ([]byte, error) {
	return []byte("project: a\n"), d.err
}
func (d *fakeDaemon) PutProject(_ context.Context, name string, file []byte) (bool, error) {
	return name == "new", d.recordCall("put", name, string(file))
}
func (d *fakeDaemon) DeleteProject(_ context.Context, name string) error {
	return d.recordCall("delete", name)
}
func (d *fakeDaemon) ControlProject(_ context.Context, name string, a ProjectAction) error {
	return d.recordCall(string(a), name)
}
func (d *fakeDaemon) ReloadProjects(context.Context) ([]ProjectReloadResult, error) {
	return []ProjectReloadResult{{Project: "a", Outcome: "none"}}, d.recordCall("reload")
}
func (d *fakeDaemon) Inspector(_ context.Context, name string) (Inspector, error) {
	_, err := d.Project(context.Background(), name)
	return fakeInspector{d}, err
}

// A fakeInspector is the Inspector of a project of a fakeDaemon.
type fakeInspector struct{ *fakeDaemon }

func (d fakeInspector) FrontierStats(context.Context) (*FrontierStats, error) {
	return fakeAnswerPointer[FrontierStats](d.fakeDaemon)
}
func (d fakeInspector) FrontierURLs(_ context.Context, q FrontierURLQuery) iter.Seq2[*FrontierURL, error] {
	d.recordCall("frontierURLs", q.Host, q.Origin, q.State)
	return fakeStream[FrontierURL](d.fakeDaemon)
}
func (d fakeInspector) LedgerRecords(_ context.Context, q LedgerQuery) iter.Seq2[*ledger.Record, error] {
	d.recordCall("ledger", q.URL, q.Host)
	return fakeStream[ledger.Record](d.fakeDaemon)
}

// fakeStream yields streamLength values, and then streamErr if that is set.
func fakeStream[T any](d *fakeDaemon) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for range max(d.streamLength, 1) {
			v, err := fakeAnswerPointer[T](d)
			if !yield(v, err) || err != nil {
				return
			}
		}
		if d.streamErr != nil {
			yield(nil, d.streamErr)
		}
	}
}

func (d fakeInspector) AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*AddURLsResult, error) {
	in := &AddURLsResult{}
	for line, err := range lines {
		if err != nil {
			return in, err
		}
		if strings.HasPrefix(line, "(") {
			in.InvalidLines++
			continue
		}
		if d.onURL != nil {
			if err := d.onURL(line); err != nil {
				return in, err
			}
		} else {
			d.urls = append(d.urls, line)
		}
		in.Added++
	}
	return in, d.err
}
func (d *fakeDaemon) Hosts(_ context.Context, _ string, q HostQuery) (*HostListPage, error) {
	d.recordCall("hosts", q.Search, q.State, q.Sort)
	p, err := fakeAnswerPointer[HostListPage](d)
	if p != nil {
		p.Total, p.Offset = 1234, q.Offset
	}
	return p, err
}
func (d *fakeDaemon) HostDetail(context.Context, string, string) (*HostDetail, error) {
	return fakeAnswerPointer[HostDetail](d)
}
func (d fakeInspector) ExplainURL(context.Context, string) (*URLExplanation, error) {
	return fakeAnswerPointer[URLExplanation](d.fakeDaemon)
}
func (d fakeInspector) Report(_ context.Context, _ ReportQuery, use func(*StreamedReport) error) error {
	r, err := fakeAnswerPointer[CrawlReport](d.fakeDaemon)
	if err != nil {
		return err
	}
	r.Hosts = nil
	return use(&StreamedReport{Totals: *r, Hosts: fakeStream[Host](d.fakeDaemon)})
}
func (d *fakeDaemon) RobotsFile(_ context.Context, _, origin, version string) (*RobotsFile, error) {
	d.recordCall("robots", origin, version)
	return fakeAnswerPointer[RobotsFile](d)
}
func (d *fakeDaemon) ProjectActiveVisits(context.Context, string) ([]ActiveVisit, error) {
	return fakeAnswer[[]ActiveVisit](d)
}
func (d *fakeDaemon) ProjectThroughput(context.Context, string, bool) ([]ThroughputSample, error) {
	return fakeAnswer[[]ThroughputSample](d)
}
func (d *fakeDaemon) SubscribeEvents(ctx context.Context, name string) (iter.Seq[Event], error) {
	if d.err != nil {
		return nil, d.err
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
func (d *fakeDaemon) Brakes(context.Context) ([]Brake, error) { return d.brakes, d.err }
func (d *fakeDaemon) SetBrake(_ context.Context, b Brake) error {
	d.mu.Lock()
	d.brakes = append(d.brakes, b)
	d.mu.Unlock()
	return d.recordCall("brake", b.Host)
}
func (d *fakeDaemon) LiftBrake(_ context.Context, host string) error {
	return d.recordCall("lift", host)
}
func (d *fakeDaemon) CheckReady(context.Context) error { return d.readyErr }
func (d *fakeDaemon) CrawlerIdentities() CrawlerIdentities {
	a, _ := fakeAnswer[CrawlerIdentities](d)
	return a
}

func (d *fakeDaemon) PublishedSigningKeys(string) *botauth.KeyDirectory {
	k, err := botauth.GenerateKey()
	if err != nil {
		return nil
	}
	directory, _ := botauth.NewKeyDirectory("https://bot.example.com", k)
	return directory
}

func fakeAnswerPointer[T any](d *fakeDaemon) (*T, error) {
	v, err := fakeAnswer[T](d)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// rotatedToken is the token that rotateTestToken returns.
const rotatedToken = "the token after a rotation"

// rotateTestToken is the RotateToken of newServer.
func rotateTestToken(name string) (APIKey, string, error) {
	if name != "operator" {
		return APIKey{}, "", NotFound("no token %s", name)
	}
	return APIKeyFromToken(name, RoleOperate, rotatedToken), "/data/token", nil
}

// newServer returns a server of d, with a page that answers with the path of the request.
func newServer(t *testing.T, d *fakeDaemon, change ...func(*ServerConfig)) *Server {
	t.Helper()
	audit, err := OpenAuditLog(filepath.Join(t.TempDir(), "audit.jsonl"), AuditRotationLimits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := audit.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := ServerConfig{
		APIKeys: []APIKey{APIKeyFromToken("operator", RoleOperate, operateToken),
			APIKeyFromToken("reader", RoleRead, readToken)},
		RotateToken: rotateTestToken,
		AuditLog:    audit,
		MetricsHandler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("decorum_queued 1\n"))
		}),
		PageHandler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			w.Write([]byte("page of " + CallerFromContext(r.Context()).Name))
		}),
	}
	for _, c := range change {
		c(&cfg)
	}
	return NewServer(d, cfg)
}

// A testRequest is one request of a test.
type testRequest struct {
	method, path, body string
	header             []string // names and values
}

// withToken returns the request with a token.
func (c testRequest) withToken(token string) testRequest {
	if token != "" {
		c.header = append(c.header[:len(c.header):len(c.header)], "Authorization", "Bearer "+token)
	}
	return c
}

// withHeader returns the request with one more header.
func (c testRequest) withHeader(name, value string) testRequest {
	c.header = append(c.header[:len(c.header):len(c.header)], name, value)
	return c
}

// sendTo sends the request to a handler and returns the answer.
func (c testRequest) sendTo(s http.Handler) *httptest.ResponseRecorder {
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

// exampleRequest returns a valid call of a route.
func (rt *route) exampleRequest() testRequest {
	path := strings.NewReplacer("{project}", "books", "{token}", "operator", "{host}", "example.com", "{origin}",
		"https%3A%2F%2Fexample.com").Replace(rt.path)
	c := testRequest{method: rt.method, path: path}
	switch rt.operationID {
	case "explain":
		c.path += "?url=https%3A%2F%2Fexample.com%2F"
	case "putProject":
		c.body = "project: books\n"
	case "addURLs":
		c = c.withHeader("Content-Type", "text/plain")
		c.body = "https://example.com/\n"
	case "brakeHost", "setBrake":
		c.body = `{"stop": true, "reason": "asked to"}`
	case "login":
		c = c.withHeader("Content-Type", formTypes[0])
		c.body = "token=" + operateToken
	}
	return c
}

var errSecret = errors.New("open /home/secret/frontier.db: no space left on device")
