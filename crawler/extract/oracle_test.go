package extract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
	"golang.org/x/net/html"
)

const utf8HTML = "text/html; charset=utf-8"

// An oracleMention is a link as the oracle finds it.
type oracleMention struct {
	kind LinkKind
	ref  string
	rel  NoFollowRels
}

// An oracle reads a page with the tokenizer of x/net/html, which follows the same standard, with
// scripts off. A tokenizer cannot know where svg and math begin and end: TestSameAsDOM covers pages
// that have them.
type oracle struct {
	mentions []oracleMention
	title    string
	base     *string
	hasTitle bool
}

func (r *oracle) read(body []byte) {
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			r.handleStartTag(z, z.Token())
		}
	}
}

func (r *oracle) handleStartTag(z *html.Tokenizer, t html.Token) {
	switch t.Data {
	case "noscript":
		z.NextIsNotRawText()
	case "a":
		r.addMention(t, Anchor, "href")
	case "area":
		r.addMention(t, Area, "href")
	case "frame":
		r.addMention(t, Frame, "src")
	case "iframe":
		r.addMention(t, IFrame, "src")
	case "embed":
		r.addMention(t, Embed, "src")
	case "object":
		r.addMention(t, Embed, "data")
	case "blockquote", "q":
		r.addMention(t, Citation, "cite")
	case "form":
		if ref, ok := formTarget(t); ok {
			r.mentions = append(r.mentions, oracleMention{Form, ref, relOfToken(t)})
		}
	case "link":
		r.handleLinkElement(t)
	case "base":
		if href, ok := tokenAttr(t, "href"); ok && r.base == nil {
			r.base = &href
		}
	case "title":
		if !r.hasTitle {
			r.readTitle(z)
		}
	}
}

// formTarget returns the action of a form without its query, and false if the form has another method than
// GET.
func formTarget(t html.Token) (string, bool) {
	method, _ := tokenAttr(t, "method")
	action, ok := tokenAttr(t, "action")
	action, _, _ = strings.Cut(action, "?")
	return action, ok && !strings.EqualFold(method, "post") && !strings.EqualFold(method, "dialog")
}

// readTitle returns the text after the start tag of a title, without consuming it.
func (r *oracle) readTitle(z *html.Tokenizer) {
	r.hasTitle = true
	rest := slices.Clone(z.Buffered())
	inner := html.NewTokenizerFragment(bytes.NewReader(rest), "title")
	if inner.Next() == html.TextToken {
		r.title = strings.Join(strings.Fields(string(inner.Text())), " ")
	}
}

func (r *oracle) handleLinkElement(t html.Token) {
	rel, _ := tokenAttr(t, "rel")
	tokens := strings.Fields(strings.ToLower(rel))
	kinds := []struct {
		token string
		kind  LinkKind
	}{{"canonical", Canonical}, {"alternate", alternateKind(t)}, {"next", Next}, {"prev", Prev},
		{"previous", Prev}, {"amphtml", AMP}, {"author", Info}, {"help", Info}, {"license", Info}}
	for _, k := range kinds {
		isPage := !slices.Contains(tokens, "stylesheet") && !slices.Contains(tokens, "icon")
		if slices.Contains(tokens, k.token) && isPage {
			r.addMention(t, k.kind, "href")
			return
		}
	}
}

func alternateKind(t html.Token) LinkKind {
	kind, _ := tokenAttr(t, "type")
	switch strings.ToLower(kind) {
	case "application/rss+xml", "application/atom+xml":
		return Feed
	}
	return Alternate
}

func (r *oracle) addMention(t html.Token, kind LinkKind, name string) {
	ref, ok := tokenAttr(t, name)
	if !ok {
		return
	}
	m := oracleMention{kind: kind, ref: ref}
	if kind <= Area {
		m.rel = relOfToken(t)
	}
	r.mentions = append(r.mentions, m)
}

func relOfToken(t html.Token) (r NoFollowRels) {
	value, _ := tokenAttr(t, "rel")
	rels := map[string]NoFollowRels{"nofollow": NoFollow, "ugc": UGC, "sponsored": Sponsored}
	for _, token := range strings.Fields(strings.ToLower(value)) {
		r |= rels[token]
	}
	return r
}

func tokenAttr(t html.Token, name string) (string, bool) {
	for _, a := range t.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val, true
		}
	}
	return "", false
}

// links resolves the mentions once the whole page has been read.
func (r *oracle) links(home decorum.URL) []Link {
	return resolveMentions(home, r.base, r.mentions)
}

// resolveMentions resolves mentions against the base, if there is one, and merges mentions of the
// same URL. It shares no code with pageParser.addLink.
func resolveMentions(home decorum.URL, href *string, mentions []oracleMention) []Link {
	base := home
	if href != nil {
		if u, err := home.Resolve(strings.Trim(*href, whitespace)); err == nil {
			base = u
		}
	}
	var links []Link
	index := map[decorum.URL]int{}
	withoutRel := map[decorum.URL]bool{} // URLs with a mention without NoFollowRels
	for _, m := range mentions {
		ref := strings.Trim(m.ref, whitespace)
		if !isCrawlableHref([]byte(ref)) || len(ref) > maxRefBytes {
			continue
		}
		u, err := base.Resolve(ref)
		if err != nil {
			continue
		}
		i, seen := index[u]
		if !seen {
			i, index[u] = len(links), len(links)
			links = append(links, Link{URL: u, Kind: m.kind, FollowableKind: m.kind})
		}
		if m.rel == 0 && (!withoutRel[u] || m.kind < links[i].FollowableKind) {
			links[i].FollowableKind = m.kind
		}
		withoutRel[u] = withoutRel[u] || m.rel == 0
		links[i].Kind = min(links[i].Kind, m.kind)
		links[i].IsFeed = links[i].IsFeed || m.kind == Feed
		links[i].IsImage = links[i].IsImage || m.kind == Image
		if links[i].Rel |= m.rel; withoutRel[u] {
			links[i].Rel = 0
		}
	}
	return links
}

// scriptBugPages matches pages on which x/net/html deviates from the standard. A "<" in an escaped
// script that does not begin a tag makes it leave the escaped state, where the standard says
// "reconsume in the script data escaped state". TestScript has the results of the standard.
var scriptBugPages = regexp.MustCompile(`(?is)<script.*<!--.*<[^a-z/]`)

// foreignContentRE matches pages that a tokenizer alone cannot read correctly.
var foreignContentRE = regexp.MustCompile(`(?i)<(svg|math)`)

// compareWithOracle fails the test if ScanPage and the oracle read the page differently.
func compareWithOracle(t *testing.T, body []byte) {
	t.Helper()
	if foreignContentRE.Match(body) {
		return
	}
	home := mustParse(t, "http://example.com/dir/page")
	var want oracle
	want.read(body)
	got := (&Scanner{IncludeForms: true}).ScanPage(body, utf8HTML, home)
	if links := want.links(home); !slices.Equal(got.Links, links) {
		t.Errorf("page %q\n got %v\nwant %v", body, got.Links, links)
	}
	if title := truncateUTF8(want.title, maxTitleBytes); len(want.title) < maxTitleBytes && got.Title != title {
		t.Errorf("page %q\n got title %q\nwant title %q", body, got.Title, title)
	}
}

func mustParse(t testing.TB, s string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// oddPages are pages with edge cases of the tokenizer's rules.
var oddPages = []string{
	`<a href="/x">`, `<a href='/x'>`, `<a href=/x>`, `<A HREF=/x>`, `<a href = "/x" >`, "<a\nhref\t=\f/x>",
	`<a href=/x/>`, `<a/href=/x>`, `<a href="/x"rel="nofollow">`, `<a href=/x rel=nofollow/>`,
	`<a title="a>b" href=/x>`, `<a title='a>b' href=/x>`, `<a b" href="x>y">`, `<a x=y="z>w" href=/x>`,
	`<a href=/1 href=/2>`, `<a HREF=/1 href=/2>`, `<a href>`, `<a href=>`, `<a href=""><a href='' rel=x>`,
	`<a =href=/x>`, `<a / =x href=/y>`, `<a href = >/x`, `<a href="/x`, `<a href=/x`, `<a href`,
	`<a `, `<a`, `<`, `</`, `</a`,
	`<a href=/1><b></a><a href=/2>`, `< a href=/x>`, `<<a href=/x>`, `<1 href=/x>`, `<ab href=/x>`, `<a.b href=/x>`,
	`<!-- <a href=/1> --><a href=/2>`, `<!--><a href=/1>`, `<!---><a href=/1>`, `<!----><a href=/1>`,
	`<!--!><a href=/1>--><a href=/2>`, `<!----!><a href=/1>`, `<!-- --!><a href=/1>`,
	`<!-- -- ><a href=/1>--><a href=/2>`,
	`<!--- --><a href=/1>`, `<!-- --->`, `<!-- <a href=/1>`, `<!-<a href=/1>`, `<!><a href=/1>`, `<!`, `<!-`, `<!--`,
	`<!doctype html "<a href=/1>"><a href=/2>`, `<?php "<a href=/1>" ?><a href=/2>`, `</ <a href=/1>><a href=/2>`,
	`</><a href=/1>`, `</a href="<a href=/1>"><a href=/2>`, `<![CDATA[<a href=/1>]]><a href=/2>`,
	`<svg><![CDATA[<a href=/1>]]></svg><a href=/2>`, `<svg/><![CDATA[<a href=/1>]]><a href=/2>`,
	`<svg><title>no</title></svg><title>yes</title>`, `<svg><script/><a href=/1></svg>`, `<math><a href=/1>`,
	`<script><a href=/1></script><a href=/2>`, `<script>"</scripty>"<a href=/1></script ><a href=/2>`,
	`<script><!--<script></script><a href=/1>--></script><a href=/2>`, `<script><!--</script><a href=/1>`,
	`<script><!--<script><a href=/1></script></script><a href=/2>`, `<script><!--><script></script><a href=/1>`,
	`<script><!--<scripty></script><a href=/1>`, `<script><!--<script>--></script><a href=/1>`,
	`<script><!-- <script> <script> </script> </script> <a href=/1>`,
	`<script></SCRIPT/><a href=/1>`, `<script></script`,
	`<script><!--->--></script><a href=/1>`, `<script><!-<script></script><a href=/1>`,
	`<script><<!--<script></script></script><a href=/1>`,
	`<style><a href=/1></style><a href=/2>`, `<textarea><a href=/1></textarea><a href=/2>`,
	`<xmp><a href=/1></xmp><a href=/2>`,
	`<iframe src=/f><a href=/1></iframe><a href=/2>`, `<noframes><a href=/1></noframes><a href=/2>`,
	`<noembed><a href=/1></noembed><a href=/2>`,
	`<noscript><a href=/1></noscript><a href=/2>`, `<plaintext><a href=/1>`,
	`<title>A &amp; B</title>`, `<title> a  b` + "\n" + `c </title>`, `<title><b>x</b></title>`,
	`<title>x</titles></title>`,
	`<title>&lt;&#65;&#x42;&eacute;&notit;&copy=</title>`, `<title>never closed <a href=/1>`,
	`<title></title><title>2</title>`,
	`<title/>x</title>`, `<TITLE>x</TITLE>`, `<a title="<title>no</title>"><title>yes</title>`,
	`<a href="?a=1&amp;b=2">`, `<a href="?a=1&b=2">`, `<a href="?a=1&copy=2">`,
	`<a href="?a=1&copy;=2">`, `<a href="?a&copy">`,
	`<a href="?a&copyright">`, `<a href="?a&copy/">`, `<a href="?a&notit;">`,
	`<a href="?a&not;">`, `<a href="?&semi;">`,
	`<a href="?&#x41;&#65&#65x&#x41g&#;&#x;&#xZ">`, `<a href="?&#0;&#x80;&#xD800;&#x110000;&#99999999999;">`,
	`<a href="&">`, `<a href="?&;">`,
	`<a href="?&NotEqualTilde;&nvlt;">`, `<a href="&sol;x">`, "<a href='/x\x00y'>",
	"<a\x00 href=/x>", "<a href\x00=/x>",
	`<base href="/b/"><a href=x>`, `<a href=x><base href="/b/">`, `<base><base href=/b/><base href=/c/><a href=x>`,
	`<base href="javascript:x"><a href=y>`, `<base href="http://other.example/"><a href=x>`,
	`<a href=/1 rel="x NoFollow"><a href=/1>`, `<a href=/1 rel=ugc><area href=/1 rel=sponsored>`,
	`<link rel=canonical href=/c><a href=/c rel=nofollow>`,
	`<link rel="alternate stylesheet" href=/s>`, `<link rel=next href=/n>`, `<link rel="alternate icon" href=/i>`,
	`<link rel="license author" href=/l>`, `<q cite=/q>`, `<blockquote CITE=/b>`, `<form action=/f?x#y rel=nofollow>`,
	`<form method=Post action=/p>`, `<form method=none action="?x=1">`, `<form method=" post" action=/f>`,
	`<a href=#f><a href=mailto:x@y><a href=JavaScript:x><a href=tel:1><a href=data:,><a href=" /x ">`,
	`<a href="a:b"><a href="./a:b">`,
}

func TestSameAsTokenizer(t *testing.T) {
	for _, page := range oddPages {
		compareWithOracle(t, []byte(page))
	}
}

// randomMixture returns a random combination of pieces, which may be cut.
func randomMixture(rng *rand.Rand, pieces []string) (page []byte) {
	for range 1 + rng.IntN(8) {
		piece := pieces[rng.IntN(len(pieces))]
		if rng.IntN(4) == 0 {
			piece = piece[:rng.IntN(len(piece)+1)]
		}
		page = append(page, piece...)
	}
	return page
}

// TestSameAsTokenizerOnMixtures compares the scanner and the oracle on random combinations of
// pieces of pages: each piece is read in the state that the one before leaves.
func TestSameAsTokenizerOnMixtures(t *testing.T) {
	pieces := slices.Concat(oddPages, strings.Split(
		`<,>,",',=,/,!,-,--,&,;,a,href,<!--,-->,</script>,<script>,</title>,<title>,]]>,<![CDATA[, ,`+"\n", ","))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		page := randomMixture(rng, pieces)
		if scriptBugPages.Match(page) {
			continue
		}
		compareWithOracle(t, page)
		if t.Failed() {
			return
		}
	}
}

func TestSameAsTokenizerOnPage(t *testing.T) { compareWithOracle(t, samplePage()) }

func FuzzScan(f *testing.F) {
	for _, page := range oddPages {
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if utf8.Valid(body) && !scriptBugPages.Match(body) {
			compareWithOracle(t, body)
		}
		doc := new(Scanner).ScanPage(body, "text/html", mustParse(t, "http://example.com/"))
		if len(doc.Title) > maxTitleBytes || !utf8.ValidString(doc.Title) {
			t.Errorf("title %q", doc.Title)
		}
	})
}

// samplePage is a page of 20 KiB with about 370 elements and 50 links.
func samplePage() []byte {
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page of the sample " +
		"&amp; its links</title>\n")
	b.WriteString("<link rel=\"canonical\" href=\"http://example.com/dir/page\"><style>body > p { margin: 0 " +
		"}</style>\n")
	b.WriteString("<script>if (1 < 2) { document.write('<p>') }</script></head><body class=\"plain\">\n")
	for i := range 50 {
		fmt.Fprintf(&b, "<div class=\"item odd\" id=\"item-%d\"><h2>Heading %d</h2>\n<p>%s</p>\n", i, i,
			strings.Repeat("words of the text ", 10))
		fmt.Fprintf(&b, "<span class=\"more\"><a class=\"link\" "+
			"href=\"/section/%d/article-%d.html?x=%d&amp;y=2\">Read <b>more</b></a></span><br>\n", i%7, i, i)
		b.WriteString("<!-- end of the item --></div>\n")
	}
	const end = "</p></body></html>"
	b.WriteString("<p>")
	b.WriteString(strings.Repeat(".", max(0, 20<<10-b.Len()-len(end))) + end)
	return b.Bytes()
}
