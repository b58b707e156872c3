package api_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A fixedDaemon is a Daemon that implements only Projects.
type fixedDaemon struct{ api.Daemon }

func (fixedDaemon) Projects(context.Context) ([]api.Project, error) {
	return []api.Project{{Name: "books", State: api.StateRunning}, {Name: "news", State: api.StatePaused}}, nil
}

// A client with a token of the role read lists the projects of a daemon.
func Example() {
	key := api.APIKeyFromToken("monitor", api.RoleRead, "secret")
	server := httptest.NewServer(api.NewServer(fixedDaemon{}, api.ServerConfig{APIKeys: []api.APIKey{key}}))
	defer server.Close()

	client := api.Client{Server: server.URL, Token: "secret"}
	projects, err := client.Projects(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range projects {
		fmt.Println(p.Name, p.State)
	}
	// Output:
	// books running
	// news paused
}
