package crawlaccess

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/internal/testfile"
)

// A call ends after clientTimeout if the daemon accepts the connection and never answers.
func TestClientTimeout(t *testing.T) {
	done := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer hung.Close()
	defer close(done)
	r := DaemonFlags{serverURL: hung.URL, tokenFile: testfile.Write(t, "token", "x")}
	c, err := r.NewClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.HTTP.Timeout != clientTimeout {
		t.Errorf("the timeout is %v", c.HTTP.Timeout)
	}
	c.HTTP.Timeout = time.Millisecond
	_, err = c.Brakes(t.Context())
	if err := r.ExplainError(t.Context(), err); err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("after the timeout: %v", err)
	}
}
