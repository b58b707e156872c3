package extract

import (
	"net/http"
	"strings"
	"testing"
)

var directiveTests = []struct {
	name   string
	page   string
	header []string
	want   string
}{
	{name: "nothing", page: `<meta name=robots content="index, follow, all, max-snippet:-1"><meta name=description content="noindexes">`},
	{name: "all there are", page: `<meta name=robots content="noindex,nofollow;noarchive nosnippet,notranslate, NoImageIndex,noai,noimageai">`,
		want: "noindex, nofollow, noarchive, nosnippet, notranslate, noimageindex, noai, noimageai"},
	{name: "none means two", page: `<META NAME="Robots" CONTENT="None">`, want: "noindex, nofollow"},
	{name: "nocache", page: `<meta name=robots content=nocache>`, want: "noarchive"},
	{name: "noml", page: `<meta name=robots content="noml">`, want: "noai"},
	{name: "named agent", page: `<meta name=ExampleBot content=noindex>`, want: "noindex"},
	{name: "other agent", page: `<meta name=otherbot content=noindex>`},
	{name: "stricter of both", page: `<meta name=robots content=nofollow><meta name=examplebot content="index, noarchive">`, want: "nofollow, noarchive"},
	{name: "two of a name", page: `<meta name=robots content=noindex><meta name=robots content="index, nofollow">`,
		want: "noindex, nofollow"},
	{name: "in a comment", page: `<!-- <meta name=robots content=noindex> -->`},
	{name: "header", header: []string{"noindex, nofollow"}, want: "noindex, nofollow"},
	{name: "header for this agent", header: []string{"ExampleBot: noindex, nofollow"}, want: "noindex, nofollow"},
	{name: "header for another", header: []string{"otherbot: noindex, nofollow"}},
	{name: "fields add up", header: []string{"otherbot: noindex", "nosnippet", "examplebot/1.0: noarchive"},
		want: "noarchive, nosnippet"},
	{name: "fields joined by a proxy", header: []string{"nosnippet, otherbot: noindex, nofollow, examplebot: " +
		"noarchive"}, want: "noarchive, nosnippet"},
	{name: "a directive with a value is not an agent", header: []string{"max-snippet: 20, noindex"}, want: "noindex"},
	{name: "half a date is not an agent", header: []string{"unavailable_after: Sat, 25 Jun 2050 15:00:00 PST, noindex"},
		want: "noindex"},
	{name: "header and page", page: `<meta name=robots content=noindex>`, header: []string{"nofollow"},
		want: "noindex, nofollow"},
}

func TestDirectives(t *testing.T) {
	for _, test := range directiveTests {
		t.Run(test.name, func(t *testing.T) {
			doc := new(Scanner).ScanPage([]byte(test.page), "text/html", mustParse(t, "http://example.com/"))
			header := http.Header{"X-Robots-Tag": test.header}
			if got := doc.RobotsDirectivesFor("examplebot", header).String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDirectivesOfWhatIsNotHTML(t *testing.T) {
	var doc *ScanResult
	header := http.Header{"X-Robots-Tag": {"noindex"}}
	if got := doc.RobotsDirectivesFor("examplebot", header); !got.NoIndex {
		t.Error("a document that is not HTML loses its header")
	}
}

func TestRulesAreBounded(t *testing.T) {
	var page []byte
	for i := range 3 * maxRobotsMetaAgents {
		page = append(page, "<meta content=noindex name=x"...)
		page = append(page, byte('a'+i%26), byte('a'+i/26), '>')
	}
	doc := new(Scanner).ScanPage(page, "text/html", mustParse(t, "http://example.com/"))
	if len(doc.RobotsMeta) != maxRobotsMetaAgents {
		t.Errorf("%d rules", len(doc.RobotsMeta))
	}
}

func TestTDMReservation(t *testing.T) {
	for page, want := range map[string]string{
		`<title>x</title>`: " ",
		`<meta name="TDM-Reservation" content=" 1 "><meta name=tdm-policy content=" https://a.example/p?a&amp;b ">`:       "1 https://a.example/p?a&b",
		`<meta name=tdm-reservation content=0><meta name=tdm-reservation content=1><meta name=tdm-reservation content=0>`: "1 ",
		`<meta name=tdm-reservation content=0><meta name=tdm-policy content=/a><meta name=tdm-policy content=/b>`:         "0 /a",
		`<!-- <meta name=tdm-reservation content=1> --><meta property=tdm-reservation content=1>`:                         " ",
		`<meta name=tdm-reservation content="` + strings.Repeat("1", 1000) +
			`">`: strings.Repeat("1", maxAgentBytes) + " ",
		`<meta name=tdm-policy content="` + strings.Repeat("1", maxRefBytes+1) + `">`: " ",
	} {
		doc := new(Scanner).ScanPage([]byte(page), "text/html", mustParse(t, "http://example.com/"))
		if got := doc.TDMReservationMeta + " " + doc.TDMPolicyMeta; got != want {
			t.Errorf("%.100s: got %q, want %q", page, got, want)
		}
	}
}
