package extract

// Inside svg and math other rules hold (HTML standard §13.2.6.5, "parsing
// tokens in foreign content"): elements are not those of HTML even if their
// names are, none has text for content, and CDATA sections are text. A full
// parser knows where it is from its stack of open elements. To know it without
// a tree, only the elements are remembered that lead into foreign content and
// out of it again. HTML that is left open in an integration point is not: there
// the standard ignores end tags that close the island here.

// An island is such an element, while it is open.
type island struct {
	name  string
	svg   bool // its namespace is SVG's, else MathML's
	point bool // an integration point: what is in it is HTML again
}

// maxIslands is how deep islands nest; deeper ones are passed over.
const maxIslands = 64

// foreign reports whether the walk is in foreign content.
func (p *page) foreign() bool {
	n := len(p.islands)
	return n > 0 && !p.islands[n-1].point
}

// land remembers an island whose start tag was passed.
func (p *page) land(i island) {
	if !p.void && len(p.islands) < maxIslands {
		p.islands = append(p.islands, i)
		p.cdata = true
	}
}

// leave forgets the islands from the n-th on.
func (p *page) leave(n int) {
	p.islands = p.islands[:n]
	p.cdata = p.xhtml || p.foreign()
}

// root remembers an svg or math element. In foreign content it is but one more
// element of the namespace that it stands in.
func (p *page) root(e element) {
	svg := e == svg
	if p.foreign() {
		svg = p.islands[len(p.islands)-1].svg
	}
	p.land(island{name: names[e], svg: svg})
}

// cross follows a tag of that name, passed while an island is open. It reports
// whether the element is a foreign one, if the tag is a start tag.
func (p *page) cross(name []byte, end bool) (foreign bool) {
	top := p.islands[len(p.islands)-1]
	var buffer [maxForeignName]byte
	if len(name) > len(buffer) {
		return !top.point
	}
	low := buffer[:copy(buffer[:], name)]
	for i, c := range low {
		if class[c]&letter != 0 {
			low[i] = c | 0x20
		}
	}
	switch {
	case end:
		p.close(low)
		return false
	case top.point:
		p.cdata = p.xhtml // until here it was text of the point itself
		return false
	case breaksOut(low):
		p.breakOut()
		return false
	}
	if at := integrationPoint(low, top.svg); at != "" {
		p.land(island{name: at, svg: top.svg, point: true})
	}
	return true
}

// close follows an end tag.
func (p *page) close(name []byte) {
	if p.foreign() && (string(name) == "p" || string(name) == "br") {
		p.breakOut()
		return
	}
	for i := len(p.islands) - 1; i >= 0; i-- {
		if p.islands[i].name == string(name) {
			p.leave(i)
			return
		}
	}
}

// breakOut goes back to where HTML was last.
func (p *page) breakOut() {
	n := len(p.islands)
	for n > 0 && !p.islands[n-1].point {
		n--
	}
	p.leave(n)
}

const maxForeignName = len("foreignobject")

// Elements in which HTML goes on. annotation-xml would be one more, with some
// encodings; the HTML in it breaks out of math as a rule, which comes to the same.
var (
	svgPoints  = []string{"foreignobject", "desc", "title"}
	mathPoints = []string{"mi", "mo", "mn", "ms", "mtext"}
)

// integrationPoint returns the name of such an element, "" for others.
func integrationPoint(name []byte, svg bool) string {
	points := mathPoints
	if svg {
		points = svgPoints
	}
	for _, point := range points {
		if string(name) == point {
			return point
		}
	}
	return ""
}

// breaksOut reports whether a start tag of that name cannot stand in foreign
// content, but ends it: somebody forgot an end tag. The standard has font
// with some attributes, too.
func breaksOut(name []byte) bool {
	switch string(name) {
	case "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed",
		"h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta",
		"nobr", "ol", "p", "pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup",
		"table", "tt", "u", "ul", "var":
		return true
	}
	return false
}
