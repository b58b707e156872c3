package web

import "testing"

// TestPages: PageNumber returns the number of each path that PagePath returns, and refuses other
// paths.
func TestPages(t *testing.T) {
	for n := range 1000 {
		if got, ok := PageNumber(PagePath(n)); !ok || got != n {
			t.Fatalf("%s is page %d, want %d", PagePath(n), got, n)
		}
	}
	for _, path := range []string{
		"", "/", "/section-1/article-2.html", "/section-0/article--1.html", "/section-0/article-0.htm",
	} {
		if n, ok := PageNumber(path); ok {
			t.Errorf("%q is page %d", path, n)
		}
	}
}

// TestScatter: each of the first hosts numbers maps to another host, and two consecutive numbers
// never map to neighbouring hosts.
func TestScatter(t *testing.T) {
	const hosts = 100_000
	seen := make([]bool, hosts)
	for n := range hosts {
		host := Scatter(n, hosts)
		if seen[host] {
			t.Fatalf("number %d maps to host %d, which was returned before", n, host)
		}
		if seen[host] = true; Scatter(n+1, hosts) == host+1 {
			t.Fatalf("consecutive numbers map to hosts %d and %d", host, host+1)
		}
	}
}

// TestChild: each page except the root is the child of one page.
func TestChild(t *testing.T) {
	next := 1
	for page := range 100 {
		for i := range 8 {
			if got := Child(page, i, 8); got != next {
				t.Fatalf("child %d of page %d is %d, want %d", i, page, got, next)
			}
			next++
		}
	}
}

func TestEntry(t *testing.T) {
	e := Entry(7, "paged", 20)
	if got, want := e.URL.String(), "https://www.site-7.example/paged-3/article-20.html"; got != want {
		t.Errorf("the URL is %s, want %s", got, want)
	}
	if want := "https://www.site-7.example/paged-3/index.html"; e.Referrer != want {
		t.Errorf("the referrer is %s, want %s", e.Referrer, want)
	}
}
