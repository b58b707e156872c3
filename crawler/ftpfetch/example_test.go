package ftpfetch_test

import (
	"fmt"

	"github.com/decorum-crawler/decorum/crawler/ftpfetch"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// A Fetcher dials through an httpfetch.Fetcher, which applies connect-to rules and refuses addresses
// that are not public.
func ExampleNew() {
	web, err := httpfetch.New(httpfetch.Config{UserAgent: "examplebot/1.0 (+https://example.org/bot)"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fetcher, err := ftpfetch.New(ftpfetch.Config{Dialer: web, Password: "bot@example.org"})
	fmt.Println(fetcher != nil, err)
	_, err = ftpfetch.New(ftpfetch.Config{Dialer: web})
	fmt.Println(err)
	// Output:
	// true <nil>
	// ftpfetch: Password is compulsory, in one line: it tells servers who visits them
}
