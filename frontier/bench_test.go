package frontier_test

import (
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// BenchmarkScope measures Scope.Check for the links of a page.
func BenchmarkScope(b *testing.B) {
	seed := mustURL(b, "https://www.example.test/")
	s := frontier.NewScope(frontier.ScopeConfig{CurrentYear: 2030}, []decorum.URL{seed})
	for _, path := range []string{"/", "/section-7/article-1234.html",
		"/2030/12/31/a-title-of-some-words?page=2&sort=price"} {
		b.Run(path[:min(len(path), 12)], func(b *testing.B) {
			e := storage.Entry{URL: mustURL(b, seed.String()+path[1:]), Source: storage.SourceLink, Depth: 3}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Check(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
