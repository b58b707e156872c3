package crawltest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The well-behaved part of town: what is hard here is in the rules and in the
// shape of the sites.

// library has rules with wildcards, an Allow inside a Disallow, and links to
// what is closed.
func library() Site {
	p := newPlace("library.example", "The Lending Library", Robots{
		Answer: Text(`# Please mind the books.
User-agent: *
Disallow: /loans/
Allow: /loans/rules.html
Disallow: /*?sort=
Disallow: /*.bak$
`),
		Disallow: libraryCloses,
	})
	books := items("books")
	shelves := []string{"Here and elsewhere", "At table", "In verse", "How things are"}
	var links []string
	for i, name := range shelves {
		dir := "/shelves/" + strconv.Itoa(i+1) + "/"
		var shelf []item
		for j := i; j < len(books); j += len(shelves) {
			shelf = append(shelf, books[j])
		}
		p.page(dir, name, list(p.series(dir, shelf, under(dir))...))
		links = append(links, link(dir, name))
	}
	p.page("/loans/rules.html", "House rules", para("Four weeks, clean hands, and no telling how it ends."), list(link("/", "Back to the shelves")))
	p.page("/loans/staff.html", "Who has what", para("This page is for the staff."))
	p.page("/catalogue", "Catalogue", para("Every book, by the order in which it was given."),
		list(link("/catalogue?sort=author", "By author"), link("/catalogue?sort=year", "By year"), link("/catalogue?page=2", "More")))
	p.page("/catalogue?page=2", "Catalogue, continued", list(link("/catalogue", "Back"), link("/catalogue.bak", "Last year's")))
	p.front("Open every day but one. We do not say which; do come and find out.", list(links...),
		list(link("/catalogue", "Catalogue"), link("/loans/rules.html", "House rules"),
			link("/loans/1042", "Your loans"), link("/loans/staff.html", "Staff")))
	return p.Site
}

func libraryCloses(path string) bool {
	if strings.HasPrefix(path, "/loans/rules.html") {
		return false
	}
	return strings.HasPrefix(path, "/loans/") || strings.Contains(path, "?sort=") || strings.HasSuffix(path, ".bak")
}

// garden has relative links, a page with BASE, and wildcards in the middle of
// its rules.
func garden() Site {
	p := newPlace("garden.example", "The Botanical Garden", Robots{
		Answer: Text("User-agent: *\nDisallow: /beds/*/nursery\nAllow: /beds/*/nursery/visit$\n"),
		Disallow: func(path string) bool {
			_, rest, ok := strings.Cut(path, "/beds/")
			_, rest, deep := strings.Cut(rest, "/")
			return ok && deep && strings.HasPrefix(rest, "nursery") && rest != "nursery/visit"
		},
	})
	plants, beds := items("plants"), []string{"shade", "sun", "pond", "rocks"}
	each := len(plants) / len(beds)
	for i, bed := range beds {
		dir, next := "/beds/"+bed+"/", beds[(i+1)%len(beds)]
		links := p.series(dir, plants[i*each:(i+1)*each], func(slug string) string { return "../" + bed + "/" + slug })
		p.page(dir, "In the "+bed, list(links...), list(link("../"+next+"/", "Next bed"), link("../../map/plan", "Map"),
			link("nursery/", "Nursery, for gardeners"), link("nursery/visit", "Visiting the nursery")))
		p.page(dir+"nursery/visit", "Visiting the nursery", para("Sundays, with a gardener, on tiptoe."), list(link("..", "The bed")))
		p.page(dir+"nursery/", "Nursery", para("Not yet."))
	}
	p.at("/map/plan", Always(HTML(p.html(`<base href="/beds/">`, "Map",
		list(link("shade/", "Shade"), link("sun/", "Sun"), link("pond/", "Pond"), link("rocks/", "Rocks"), link("../map/key", "Key"))))))
	p.page("/map/key", "Key to the map", para("Green is green. Blue is wet."))
	p.front("Four beds, one pond, and a bench for each month.", list(link("beds/shade/", "Begin in the shade"), link("./map/plan", "Map")))
	return p.Site
}

// timetable asks for a rest of half a second.
func timetable() Site {
	p := newPlace("timetable.example", "The Branch Line", Robots{
		Answer: Text("User-agent: *\nCrawl-delay: 0.5\nDisallow: /drivers/\n"), Delay: 500 * time.Millisecond,
		Disallow: func(path string) bool { return strings.HasPrefix(path, "/drivers/") },
	})
	links := p.series("/stations/", items("stations"), under("/stations/"))
	p.page("/stations/", "Stations", list(links...))
	p.page("/drivers/", "Drivers' room", para("Kettle on."))
	p.front("Fourteen stations, one track, and a train in each direction, taking turns.",
		list(link("/stations/", "Stations"), link("/drivers/", "Drivers")))
	return p.Site
}

// almanac goes on for ever: every month links to the next.
func almanac() Site {
	p := newPlace("almanac.example", "The Almanac", allowAll())
	p.front("A page for every month there will be.", list(link("/2026/01", "January 2026")))
	first := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	p.Others = func(r Request) Answer {
		month, err := time.Parse("/2006/01", r.Path)
		if err != nil || month.Before(first) {
			return Status(404)
		}
		links := []string{link(month.AddDate(0, 1, 0).Format("/2006/01"), "The month after")}
		if month.After(first) {
			links = append(links, link(month.AddDate(0, -1, 0).Format("/2006/01"), "The month before"))
		}
		last := month.AddDate(0, 1, -1)
		return HTML(p.html("", month.Format("January 2006"), list(links...),
			para(fmt.Sprintf("It begins on a %s and ends on a %s. The rest is open.", month.Weekday(), last.Weekday()))))
	}
	return p.Site
}

// museum has a sitemap index, and objects that only a sitemap knows of.
func museum() Site {
	p := newPlace("museum.example", "The Museum of Small Things", Robots{
		Answer:   Text("User-agent: *\nDisallow: /store/sealed\n\nSitemap: http://museum.example/sitemap.xml\n"),
		Disallow: func(path string) bool { return strings.HasPrefix(path, "/store/sealed") },
	})
	rooms := p.series("/rooms/", items("rooms"), under("/rooms/"))
	p.page("/rooms/", "Rooms", list(rooms...))
	store := []string{"/store/sealed"}
	for _, it := range items("objects") {
		p.page("/store/"+it.slug, it.title, para(it.text), list(link("/rooms/", "What is on show")))
		store = append(store, "/store/"+it.slug)
	}
	p.page("/store/sealed", "Sealed", para("Until somebody finds the key."))
	p.at("/sitemap.xml", Always(Typed("application/xml", sitemap("sitemapindex", "sitemap",
		home(p.Host)+"sitemap-rooms.xml", home(p.Host)+"sitemap-store.xml"))))
	p.at("/sitemap-rooms.xml", Always(Typed("application/xml", sitemap("urlset", "url", home(p.Host)+"rooms/"))))
	for i := range store {
		store[i] = strings.TrimSuffix(home(p.Host), "/") + store[i]
	}
	p.at("/sitemap-store.xml", Always(Typed("application/xml", sitemap("urlset", "url", store...))))
	p.front("Everything here fits into two hands.", list(link("/rooms/", "Rooms")))
	return p.Site
}

// sitemap returns a sitemap, or an index of sitemaps.
func sitemap(root, entry string, urls ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	b.WriteString("<" + root + ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for _, u := range urls {
		b.WriteString("<" + entry + "><loc>" + u + "</loc></" + entry + ">\n")
	}
	b.WriteString("</" + root + ">\n")
	return b.String()
}

// market has links with parameters that do not matter, and says so.
func market() Site {
	p := newPlace("market.example", "The Thursday Market", Robots{
		Answer: Text("User-agent: *\nDisallow:\nClean-param: ref&visit /stalls/\n"),
		Clean:  marketClean,
	})
	for i, it := range items("stalls") {
		next := items("stalls")[(i+1)%len(items("stalls"))]
		p.page("/stalls/"+it.slug, it.title, para(it.text),
			list(link("/stalls/"+next.slug+"?ref=next&visit="+strconv.Itoa(i), "Next stall"), link("/stalls/"+it.slug+"?ref=self", "This stall"),
				link("/stalls/?ref=stall", "All stalls")))
	}
	var links []string
	for i, it := range items("stalls") {
		links = append(links, link("/stalls/"+it.slug+"?visit="+strconv.Itoa(i), it.title))
	}
	p.page("/stalls/", "Stalls", list(links...))
	p.page("/stalls/apples?day=saturday", "Apples on a Saturday", para("The same apples, in better company."))
	p.front("From six until the soup is gone.", list(link("/stalls/?ref=home", "All stalls"),
		link("/stalls/apples?ref=home&day=saturday", "Apples on a Saturday")))
	return p.Site
}

// marketClean takes ref and visit off paths under /stalls/.
func marketClean(path string) string {
	path, query, _ := strings.Cut(path, "?")
	var params []string
	for _, param := range strings.Split(query, "&") {
		name, _, _ := strings.Cut(param, "=")
		if param != "" && !(strings.HasPrefix(path, "/stalls/") && (name == "ref" || name == "visit")) {
			params = append(params, param)
		}
	}
	if len(params) == 0 {
		return path
	}
	return path + "?" + strings.Join(params, "&")
}
