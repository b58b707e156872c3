package project

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

// TestZeroDelayCheck: a delay of 0, also of one host, is remarkable for hosts that are neither on this machine nor
// on a private network.
func TestZeroDelayCheck(t *testing.T) {
	for _, tt := range []struct {
		url, fields string
		want        bool
	}{
		{"https://example.com/", "", false},
		{"https://example.com/", "politeness: {delay: 1ms}\n", false},
		{"https://example.com/", "politeness: {delay: 0s}\n", true},
		{"http://93.184.216.34:8080/", "politeness: {delay: 0s}\n", true},
		{"http://127.0.0.1:8080/", "politeness: {delay: 0s}\n", false},
		{"http://[::1]/", "politeness: {delay: 0s}\n", false},
		{"http://10.1.2.3/", "politeness: {delay: 0s}\n", false},
		{"http://localhost:3000/", "politeness: {delay: 0s}\n", false},
		{"http://shop.localhost/", "politeness: {delay: 0s}\n", false},
		{"http://example.com/", "politeness: {delay: 0s}\nfetch: {connect_to: ['::127.0.0.1:80']}\n", false},
		{"http://example.com/", "politeness: {delay: 0s}\nfetch: {connect_to: ['a.example::127.0.0.1:80']}\n", true},
		{"http://example.com/", "politeness: {delay: 0s, hosts: {Example.com: {delay: 5s}}}\n", false},
		{"http://example.com/", "politeness: {delay: 0s, hosts: {example.com: {concurrency: 2}}}\n", true},
		{"http://example.com/", "politeness: {hosts: {Example.com: {delay: 0s}}}\n", true},
		{"http://example.com/", "politeness: {hosts: {example.com: {delay: 0s, expires: 2001-01-01}}}\n", false},
		{"http://example.com/", "politeness: {hosts: {other.example: {delay: 0s}}}\n", false},
	} {
		d, err := ParseFile("p.yaml", []byte(minimalFile+tt.fields))
		if err != nil {
			t.Fatal(err)
		}
		u, err := decorum.ParseURL(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.ZeroDelayCheck(time.Now())(u.Origin()); got != tt.want {
			t.Errorf("%s with %q: got %v, want %v", tt.url, tt.fields, got, tt.want)
		}
	}
}
