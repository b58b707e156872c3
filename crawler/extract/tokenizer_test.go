package extract

import (
	"slices"
	"testing"
)

// scriptTests are scripts in the standard's escaped and double escaped states, and whether the link
// after them counts.
var scriptTests = []struct {
	page string
	link bool
}{
	{`<script></script><a href=/x>`, true},
	{`<script></SCRIPT ><a href=/x>`, true},
	{`<script></scripts><a href=/x>`, false},
	{`<script><!-- </script><a href=/x>`, true},
	{`<script><!-- <script> </script><a href=/x>`, false},
	{`<script><!-- <script> </script> </script><a href=/x>`, true},
	{`<script><!-- <script> --> </script><a href=/x>`, true},
	{`<script><!-- <script/ </script/ </script/><a href=/x>`, true},
	{`<script><!--><script></script><a href=/x>`, true},
	{`<script><!---><script></script><a href=/x>`, true},
	{`<script><!-- <scripts> </script><a href=/x>`, true},
	{`<script><!- <script> </script><a href=/x>`, true},
	{`<script><!-- < <script> </script><a href=/x>`, false},
	{`<script><!-- <<script> </script><a href=/x>`, false},
	{`<script><!-- <!-- <script> </script><a href=/x>`, false},
}

func TestScript(t *testing.T) {
	for _, test := range scriptTests {
		doc := new(Scanner).ScanPage([]byte(test.page), utf8HTML, mustParse(t, "http://example.com/"))
		if got := len(doc.Links) == 1; got != test.link {
			t.Errorf("%s: link %v, want %v", test.page, got, test.link)
		}
	}
}

func TestElementOf(t *testing.T) {
	for e, name := range elementNames {
		if e > 0 && elementKindByName([]byte(name)) != elementKind(e) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"A", "IFrame", "SVG"} {
		if elementKindByName([]byte(name)) == unknownElement {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"b", "abbr", "ax", "!", "svgx", "plaintextarea", "\x01", "\xE1", "lin\xC4\xB1k"} {
		if elementKindByName([]byte(name)) != unknownElement {
			t.Errorf("%q is known", name)
		}
	}
}

func TestAttributes(t *testing.T) {
	b := []byte(`<a HREF='1' href=2 rel = x/y src content="a>b" / type=>rest`)
	tag := tokenizer{input: b}
	name, end, ok := tag.nextTag()
	if string(name) != "a" || end || !ok {
		t.Fatalf("name %q", name)
	}
	var a attributes
	if !tag.readAttributes(&a) || string(b[tag.pos:]) != "rest" {
		t.Fatalf("the tag does not end where it does: %q", b[tag.pos:])
	}
	got := []string{string(a.href), string(a.rel), string(a.src), string(a.content), string(a.typ)}
	if want := []string{"1", "x/y", "", "a>b", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if a.src == nil || a.typ == nil || a.nameValue != nil {
		t.Error("an attribute without a value is not one that is missing")
	}
}
