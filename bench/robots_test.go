package bench

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/temoto/robotstxt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// A robotsFileSet is a set of generated robots.txt files.
type robotsFileSet struct {
	name      string
	wildcards int // one rule in this many has a wildcard; 0: no rule
}

var robotsFileSets = []robotsFileSet{{"plain", 0}, {"tenth-wildcards", 10}}

// generateFiles returns 60 files of 0.5 to 80 KB, each 8.95 % larger than the one before.
func (s robotsFileSet) generateFiles() [][]byte {
	files := make([][]byte, 60)
	random := rand.New(rand.NewPCG(1, uint64(s.wildcards)))
	for i, size := 0, 512.0; i < len(files); i, size = i+1, size*1.0895 {
		files[i] = []byte(generateRobots(random, int(size), s.wildcards))
	}
	return files
}

// generateRobots returns a robots.txt of about size bytes, similar to those of shops and news sites:
// groups for some crawlers, and most rules in the group for all.
func generateRobots(random *rand.Rand, size, wildcards int) string {
	agents := []string{"Googlebot", "bingbot", "AhrefsBot", "GPTBot", "SemrushBot", "CCBot", "Yandex", "Twitterbot"}
	var b strings.Builder
	b.WriteString("# robots.txt\n\n")
	for _, agent := range agents[:1+random.IntN(len(agents))] {
		if b.Len() > size/3 {
			break
		}
		fmt.Fprintf(&b, "User-agent: %s\n", agent)
		for range 1 + random.IntN(4) {
			b.WriteString(randomRuleLine(random, wildcards))
		}
		b.WriteString("\n")
	}
	b.WriteString("User-agent: *\nCrawl-delay: 1\n")
	for n := 0; b.Len() < size; n++ {
		if n%25 == 24 {
			b.WriteString("\n# section\n")
		}
		b.WriteString(randomRuleLine(random, wildcards))
	}
	b.WriteString("\nSitemap: https://example.com/sitemap.xml\n")
	return b.String()
}

var pathWords = []string{"catalog", "cart", "search", "user", "print", "tag", "api", "news", "shop", "images",
	"archive", "en", "checkout", "wp-admin", "feed"}

// randomPath returns a path of one to three parts, the last with a number.
func randomPath(random *rand.Rand) string {
	var b strings.Builder
	for range 1 + random.IntN(3) {
		b.WriteString("/" + pathWords[random.IntN(len(pathWords))])
	}
	fmt.Fprintf(&b, "-%d/", random.IntN(500))
	return b.String()
}

// randomRuleLine returns a Disallow line, or one time in five an Allow line. One in wildcards has a
// wildcard.
func randomRuleLine(random *rand.Rand, wildcards int) string {
	field := "Disallow"
	if random.IntN(5) == 0 {
		field = "Allow"
	}
	p := randomPath(random)
	if wildcards > 0 && random.IntN(wildcards) == 0 {
		p = []string{"/*?" + p[1:len(p)-1] + "=", "/*" + p, p + "*.php$", p + "*/print"}[random.IntN(4)]
	}
	return field + ": " + p + "\n"
}

// randomURLs returns 64 URLs to check. The files disallow some of them.
func randomURLs(b *testing.B) []decorum.URL {
	random := rand.New(rand.NewPCG(2, 3))
	all := make([]decorum.URL, 64)
	for i := range all {
		var err error
		if all[i], err = decorum.ParseURL("https://example.com" + randomPath(random) + []string{"", "a.php",
			"item?id=7&sort=price", "lamps/desk-lamp.html"}[i%4]); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

const productToken = "decorumbot"

// BenchmarkRobotsParse parses a file and compiles it for one agent, as a crawl does when the file
// arrives. The two parsers read all files in turn, so that a busy machine slows both. The benchmark
// holds a heap of 64 MiB, as small crawls have: with a tiny heap it would mostly measure garbage
// collections.
func BenchmarkRobotsParse(b *testing.B) {
	for _, s := range robotsFileSets {
		b.Run(s.name, func(b *testing.B) {
			files, heap := s.generateFiles(), make([]byte, 64<<20)
			defer runtime.KeepAlive(heap)
			var r comparison
			for b.Loop() {
				r.addRun(func() {
					for _, body := range files {
						robots.Parse(body, robots.Google).RulesFor(robots.AgentFromName(productToken))
					}
				}, func() {
					for _, body := range files {
						if _, err := robotstxt.FromBytes(body); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			r.reportMetrics(b, len(files))
		})
	}
}

// BenchmarkRobotsCheck checks URLs against compiled files.
func BenchmarkRobotsCheck(b *testing.B) {
	for _, s := range robotsFileSets {
		b.Run(s.name, func(b *testing.B) {
			files, all := s.generateFiles(), randomURLs(b)
			ours, theirs := make([]*robots.Rules, len(files)), make([]*robotstxt.Group, len(files))
			for i, body := range files {
				ours[i] = robots.Parse(body, robots.Google).RulesFor(robots.AgentFromName(productToken))
				data, err := robotstxt.FromBytes(body)
				if err != nil {
					b.Fatal(err)
				}
				theirs[i] = data.FindGroup(productToken)
			}
			var r comparison
			b.ReportAllocs()
			for b.Loop() {
				r.addRun(func() {
					for _, rules := range ours {
						for _, u := range all {
							rules.Check(u)
						}
					}
				}, func() {
					for _, group := range theirs {
						for _, u := range all {
							group.Test(u.PathAndQuery())
						}
					}
				})
			}
			r.reportMetrics(b, len(files)*len(all))
		})
	}
}

// A comparison measures two implementations, which do the same work in turn.
type comparison struct {
	decorumTime, otherTime time.Duration
}

// addRun runs both once and adds up their times.
func (r *comparison) addRun(ours, theirs func()) {
	r.decorumTime += elapsed(ours)
	r.otherTime += elapsed(theirs)
}

func elapsed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// reportMetrics reports the time of each of n operations per run, and the ratio of the two times.
func (r *comparison) reportMetrics(b *testing.B, n int) {
	each := float64(n) * float64(b.N)
	b.ReportMetric(float64(r.decorumTime.Nanoseconds())/each, "ours-ns")
	b.ReportMetric(float64(r.otherTime.Nanoseconds())/each, "temoto-ns")
	b.ReportMetric(float64(r.otherTime)/float64(r.decorumTime), "times-faster")
}

// BenchmarkRobotsCheckGrowth shows how the time of a check grows with the number of prefix rules: no
// faster than the logarithm of the number.
func BenchmarkRobotsCheckGrowth(b *testing.B) {
	all := randomURLs(b)
	for _, n := range []int{50, 500, 5_000, 50_000} {
		random := rand.New(rand.NewPCG(4, 5))
		var file strings.Builder
		file.WriteString("User-agent: *\n")
		for range n {
			file.WriteString(randomRuleLine(random, 0))
		}
		o := robots.ParseOptions{MaxBytes: file.Len()}
		rules := o.Parse([]byte(file.String())).RulesFor(robots.AgentFromName(productToken))
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				rules.Check(all[i%len(all)])
			}
		})
	}
}

// BenchmarkRobotsPathological checks a URL against patterns that make a naive matcher backtrack.
func BenchmarkRobotsPathological(b *testing.B) {
	u, err := decorum.ParseURL("https://example.com/" + strings.Repeat("a", 2000))
	if err != nil {
		b.Fatal(err)
	}
	rules := robots.Parse([]byte("User-agent: *\nDisallow: /"+strings.Repeat("*a", 20)+"b\nDisallow: /"+
		strings.Repeat("*a", 20)+"\n"), robots.Google).RulesFor(robots.AgentFromName(productToken))
	b.ReportAllocs()
	for b.Loop() {
		rules.Check(u)
	}
}

// BenchmarkRobotsLargest parses and compiles 500 KiB with 20,000 rules.
func BenchmarkRobotsLargest(b *testing.B) {
	random := rand.New(rand.NewPCG(6, 7))
	var file strings.Builder
	file.WriteString("User-agent: *\n")
	for i := range 20_000 {
		fmt.Fprintf(&file, "Disallow: /%s/%d\n", pathWords[random.IntN(len(pathWords))], i)
	}
	body := []byte(file.String())
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		robots.Parse(body, robots.Google).RulesFor(robots.AgentFromName(productToken))
	}
}
