package robots

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// benchFile generates a robots.txt with n rules like those of shops: directories, some of them nested.
// Every wildcards-th rule contains a "*"; 0 means no wildcards.
func benchFile(n, wildcards int) []byte {
	words := []string{"catalog", "cart", "search", "user", "print", "tag", "api", "news", "shop", "img", "old", "en"}
	random := rand.New(rand.NewPCG(uint64(n), uint64(wildcards)))
	word := func() string { return words[random.IntN(len(words))] }
	var b strings.Builder
	b.WriteString("# generated\nUser-agent: *\nCrawl-delay: 1\n")
	for i := range n {
		field := "Disallow"
		if random.IntN(4) == 0 {
			field = "Allow"
		}
		switch {
		case wildcards > 0 && i%(2*wildcards) == wildcards-1:
			fmt.Fprintf(&b, "%s: /*?%s%d=\n", field, word(), i)
		case wildcards > 0 && i%wildcards == wildcards-1:
			fmt.Fprintf(&b, "%s: /%s/*/%s-%d/*.php$\n", field, word(), word(), i)
		default:
			fmt.Fprintf(&b, "%s: /%s/%s-%d/\n", field, word(), word(), i/2)
		}
	}
	b.WriteString("Sitemap: https://example.com/sitemap.xml\n")
	return []byte(b.String())
}

var benchSizes = []int{50, 500, 5000}

func BenchmarkParse(b *testing.B) {
	for _, n := range append(benchSizes, 20000) {
		body := benchFile(n, 10)
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(body, Google)
			}
		})
	}
}

func BenchmarkRulesFor(b *testing.B) {
	for _, n := range append(benchSizes, 20000) {
		file := Parse(benchFile(n, 10), Google)
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				file.RulesFor(AgentFromName("anybot"))
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	us := []decorum.URL{
		robotstest.URL(b, "https://example.com/"),
		robotstest.URL(b, "https://example.com/catalog/print-12/lamps/desk-lamp.html"),
		robotstest.URL(b, "https://example.com/user/search-7/page?sort=price&dir=asc"),
		robotstest.URL(b, "https://example.com/about/contact"),
	}
	for _, kind := range []struct {
		name      string
		wildcards int
	}{{"prefixes", 0}, {"tenth-wildcards", 10}} {
		for _, n := range benchSizes {
			rules := Parse(benchFile(n, kind.wildcards), Google).RulesFor(AgentFromName("anybot"))
			b.Run(fmt.Sprintf("%s/rules=%d", kind.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					rules.Check(us[i%len(us)])
				}
			})
		}
	}
}

func BenchmarkCheckPathological(b *testing.B) {
	u := robotstest.URL(b, "https://example.com/"+strings.Repeat("a", 2000))
	for _, pattern := range []string{"/*a*a*a*a*a*b", "/" + strings.Repeat("*a", 400) + "b",
		"/*" + strings.Repeat("a", 200) + "b"} {
		rules := Parse([]byte("User-agent: *\nDisallow: "+pattern+"\n"), Google).RulesFor(AgentFromName("anybot"))
		b.Run(fmt.Sprintf("octets=%d", len(pattern)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules.Check(u)
			}
		})
	}
}
