package cli

import (
	"errors"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
)

// TestForbiddenHosts: the reason of a host is that of its latest visit. The visits here have no clearance, and so
// the host "".
func TestForbiddenHosts(t *testing.T) {
	forbidden := &crawler.Visit{Err: &decorum.Error{Kind: decorum.Forbidden, Err: errors.New("a\tloopback address")}}
	var f forbiddenHosts
	for _, tt := range []struct {
		visit *crawler.Visit
		want  string
	}{
		{&crawler.Visit{Response: &decorum.Response{}}, ""},
		{forbidden, "a�loopback address"},
		{&crawler.Visit{Response: &decorum.Response{}}, ""},
		{forbidden, "a�loopback address"},
		{&crawler.Visit{Err: errors.New("no answer")}, ""},
	} {
		f.add(tt.visit)
		if got := f.reason(""); got != tt.want {
			t.Errorf("after a visit with the error %v the reason is %q, want %q", tt.visit.Err, got, tt.want)
		}
	}
}
