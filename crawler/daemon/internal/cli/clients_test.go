package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// TestManyClients lets a thousand clients call a daemon at once while it crawls. Each adds its own
// URLs and reads the project, with its token. Each accepted URL is accepted once and visited once,
// and every call is in the audit log.
func TestManyClients(t *testing.T) {
	const clients, each = 1000, 5
	f := newCommandFixture(t, crawltest.Site{Host: "many.example",
		Fallback: crawltest.StaticPage(crawltest.HTML("a page"))})
	f.PutProjectFile("many", f.ProjectYAML("http://many.example/", daemontest.NoDelayYAML))
	s := f.startAPI()
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	begin := make(chan struct{})
	taken := make([]api.AddURLsResult, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			var body bytes.Buffer
			for j := range each {
				fmt.Fprintf(&body, "{\"url\": \"http://many.example/%d/%d\"}\n", i, j)
			}
			<-begin
			err := errors.Join(s.callAPI(client, http.MethodPost, "/api/v1/projects/many/urls", &body, &taken[i]),
				s.callAPI(client, http.MethodGet, "/api/v1/projects/many", nil, new(api.Project)))
			if err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	close(begin)
	all.Wait()
	for i, in := range taken {
		if in.Added != each {
			t.Errorf("result of client %d: %+v", i, in)
		}
	}
	daemontest.WaitUntil(t, "all that was taken is visited", func() bool {
		return f.GetProject("many").Stats.Pages >= clients*each+1
	})
	visits := map[string]int{}
	for _, url := range daemontest.RequestedPages(f.Web.Log()) {
		visits[url]++
	}
	for i := range clients {
		for j := range each {
			if n := visits[fmt.Sprintf("http://many.example/%d/%d", i, j)]; n != 1 {
				t.Errorf("URL %d of client %d was visited %d times", j, i, n)
			}
		}
	}
	for _, o := range f.Web.Judge(crawltest.JudgeOptions{}).Violations {
		t.Errorf("%s: %s", o.Exchange.URL, o.Rule)
	}
	count := 0
	for before := int64(0); ; {
		page, err := s.audit.Page(before, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			if e.Who == "operator" && e.Status == http.StatusOK && e.Project == "many" {
				count++
			}
		}
		if before = page.NextBefore; before == 0 {
			break
		}
	}
	if count != clients {
		t.Errorf("%d calls are in the audit", count)
	}
}

// callAPI makes one call and reads the answer.
func (s *apiFixture) callAPI(client *http.Client, method, path string, body io.Reader, into any) error {
	r, err := http.NewRequestWithContext(s.T.Context(), method, s.server.URL+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/x-ndjson")
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s: %s", res.Status, text)
	}
	return json.NewDecoder(res.Body).Decode(into)
}
