package tablesql

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

func openKinds(t *testing.T) *Tables {
	t.Helper()
	return open(t, DefaultLimits(), map[string]string{
		"sales.csv": "id,name,price,day,paid,note\n1,ann,10,2024-01-02,true,\n" +
			"2,bob,9,2023-12-31,false,x\n3,,,2024-05-06,true,y\n",
		"days.csv": "day,n\n2024-01-02,1\n2023-12-31,20\n",
		"j.jsonl": "{\"v\":10,\"s\":\"a\",\"z\":\"007\",\"ok\":true,\"l\":[1]}\n" +
			"{\"v\":9,\"s\":\"b\",\"z\":\"12\",\"ok\":false,\"l\":[]}\n",
	})
}

// TestNumbersAreNotComparedWithTexts checks that a query fails or has a note if SQLite would
// compare a number with text, or compute with words.
func TestNumbersAreNotComparedWithTexts(t *testing.T) {
	all := openKinds(t)
	for query, says := range map[string]string{
		"select 1 from sales where price > 'ten'":                                       "compare with a number",
		"select 1 from sales where price between 'a' and 'b'":                           "compare with a number",
		"select 1 from sales where price * 2 > '9'":                                     "write 9 without quotes",
		"select 1 from sales where (price) + 1 = '9'":                                   "write 9 without quotes",
		"select 1 from sales where '9' < price / 2":                                     "write 9 without quotes",
		"select name from sales group by name having sum(price) > '1'":                  "write 1 without quotes",
		"select sum(price) s from sales having s > '1'":                                 "write 1 without quotes",
		"select 1 from sales where length(name) = '3'":                                  "write 3 without quotes",
		"select 1 from sales where strftime('%Y', day) = 2024":                          "CAST(strftime(",
		"select 1 from sales where substr(day, 1, 4) > 2023":                            "CAST(",
		"select 1 from sales where substr(day, 1, 4) in ('2024', 2023)":                 "CAST(",
		"select 1 from sales where substr(day, 1, 4) not in (2024)":                     "CAST(",
		"select 1 from sales where substr(day, 1, 4) between 2023 and 2024":             "CAST(",
		"select strftime('%Y', day) y from sales where y = 2024":                        "CAST(y AS INTEGER)",
		"with x as (select substr(day, 6, 2) m from sales) select * from x where m = 1": "CAST(m AS INTEGER)",
		"select case substr(day, 1, 4) when 2024 then 1 end c from sales":               "CAST(",
		"select 1 from sales where date(day) > 2024":                                    "'2024-01-31'",
		"select 1 from sales where replace(name, 'a', '') > 5":                          "CAST(",
		"select 1 from sales where name || 'x' > 5":                                     "CAST(",
		"select 1 from sales where name > price":                                        "CAST(name AS INTEGER)",
		"select 1 from sales where name > length(note)":                                 `such as "ann"`,
		"select 1 from sales where day > 2024-01-02":                                    `such as "2024-01-02"`,
		"select 1 from sales where '2024' < day and day < 20250101":                     `such as "2024-01-02"`,
		"select 1 from sales where max(day, '2024') > 5":                                `such as "2024-01-02"`,
		"select day + 1 from sales":                                                     "julianday(day)",
		"select name + ' ' + note from sales":                                           "||",
		"select a.day - b.day from sales a join sales b using (id)":                     "julianday(day)",
		"select max(day) - min(day) from sales":                                         "julianday",
		"select date(day) - date('now') from sales":                                     "julianday",
		"select price + 'x' from sales":                                                 `the text "x"`,
		"select round(name) from sales":                                                 `such as "ann"`,
		"select 1 from sales where coalesce(price, '0') > 5":                            "gives numbers and texts",
		"select 1 from sales where case id when 1 then price else 'n' end > 5":          "gives numbers and texts",
		"select max(coalesce(id, 'x')) from sales":                                      "chooses among",
		"select max(price, '0') from sales":                                             "chooses among",
		"select 1 from sales where paid = true":                                         "paid = 'true'",
		"select 1 from sales where paid is true":                                        "paid = 'true'",
		"select count(*) from sales where paid":                                         "paid = 'true'",
		"select count(*) from sales where id > 1 and not paid":                          "paid = 'true'",
		"select case when paid then 1 end from sales":                                   "paid = 'true'",
		"select 1 from j where v > '9'":                                                 "write 9 without quotes",
		"select 1 from j where v = '9'":                                                 "write 9 without quotes",
		"select 1 from j where s > 5":                                                   `such as "a"`,
		"select 1 from j where z = 12":                                                  "CAST(z AS INTEGER)",
		"select s + 1 from j":                                                           `such as "a"`,
	} {
		t.Run(query, func(t *testing.T) {
			if rows, err := all.Query(t.Context(), query, nil); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %s, %v; want %s", rows, err, says)
			}
		})
	}
}

// TestEqualityOfOtherKindsIsNoted checks the note about a comparison that finds nothing, which may
// be intended.
func TestEqualityOfOtherKindsIsNoted(t *testing.T) {
	all := openKinds(t)
	for query, says := range map[string]string{
		"select 1 from sales where price = 'ten'":              "price of sales has numbers",
		"select 1 from sales where price in (10, 'ten')":       "the text 'ten'",
		"select 1 from sales where price = ''":                 "IS NULL",
		"select 1 from sales where name = 5":                   "name of sales has texts",
		"select 1 from sales where day = 2024-01-02":           "the number 2024-01-02",
		"select 1 from sales s join days d on s.price = d.day": "has texts",
		"select 1 from j where v = 'x'":                        "v of j has numbers",
		"select 1 from j where s = 5":                          "s of j has texts",
		"select count(note) from sales":                        "note of sales has empty texts",
		"select 1 from sales where note is null":               "note of sales has empty texts",
		"select coalesce(name, 'none') from sales":             "name of sales has empty texts",
	} {
		t.Run(query, func(t *testing.T) {
			var told string
			ctx := WithNotes(t.Context(), func(format string, args ...any) { told += fmt.Sprintf(format, args...) })
			if _, err := all.Query(ctx, query, nil); err != nil || !strings.Contains(told, says) {
				t.Errorf("got %q, %v; want %s", told, err, says)
			}
		})
	}
}

// TestPlainQueriesGiveNoAlarm checks that plain queries cause no error and no note.
func TestPlainQueriesGiveNoAlarm(t *testing.T) {
	all := openKinds(t)
	for _, query := range []string{
		"select * from sales where price > 9",
		"select * from sales where price > '9' and price <> 'n/a' and price <> ''",
		"select count(*) from sales where price = '' or price is null",
		"select * from sales where price in ('9', 10) or id = '1'",
		"select * from sales where day > '2024-01-01' and day between '2023' and '2025'",
		"select * from sales where day >= date('2024-01-01', '-1 month')",
		"select * from sales where date(day) = '2024-01-02' or day < current_date",
		"select * from sales where strftime('%Y', day) = '2024'",
		"select * from sales where cast(strftime('%Y', day) as integer) > 2023",
		"select * from sales where strftime('%Y', day) + 0 = 2024",
		"select * from sales where substr(day, 1, 4) * 1 >= 2024 and -price < -5",
		"select cast(substr(day, 1, 4) as int) y, sum(price) s from sales group by y having y > 2000 and s > 1",
		"select strftime('%Y', 'now') - strftime('%Y', day) age from sales where age > 0",
		"select julianday('2024-02-01') - julianday(day) n from sales where n > 0",
		"select name, count(*) n from sales group by name having count(*) > 0 order by n desc, name desc limit 3",
		"select name || ' ' || price from sales where name || 'x' = 'annx'",
		"select coalesce(price, 'none') p from sales",
		"select coalesce(price, 0) p from sales where coalesce(price, 0) > 5 order by p",
		"select case when price > 9 then 'big' else 'small' end size, count(*) from sales group by size",
		"select case paid when 'true' then 1 end c from sales where paid = 'true' or paid in ('false')",
		"select sum(paid = 'true') n, max(day) d, min(day) m from sales",
		"select max(day) d from sales having d > '2024'",
		"select a.id from sales a join sales b on a.day < b.day and a.price > b.id",
		"select id from sales s join days d using (day) where d.n > 0 and s.name > 'a'",
		"select * from (select id, price * 1.5 as p from sales) where p > 10 limit 5",
		"select rank() over (partition by paid order by price nulls last) r, lag(price) over (order by id) from sales",
		"select sum(price) over (order by id rows between 1 preceding and current row) from sales",
		"select id from sales where price > (select avg(price) from sales) or id in (select id from sales)",
		"select count(*) filter (where paid = 'true') * 100.0 / count(*) pct from sales",
		"with recursive c(x) as (select 1 union all select x + 1 from c where x < 3) select max(x) from c",
		"select instr(name, 'n') > 0 and length(name) >= 3 from sales where name like 'a%' or price like '1%'",
		"select iif(paid = 'true', price, 0) p from sales where iif(paid = 'true', price, 0) > 5",
		"select -price, +price, not id from sales where not (price > 5) and id is not 2 order by -price",
		"select printf('%.2f', price) p from sales where printf('%.2f', price) = '10.00'",
		"select date from (select day as date, price as value from sales) where date > '2024' and value > 1",
		"select v from j where v > 9 and s > 'a' and ok and ok = true and z = '007'",
		"select value from j, json_each(l) where value > 0 and l ->> '$[0]' = 1",
		"select count(name) from sales where name <> ''",
	} {
		t.Run(query, func(t *testing.T) {
			var told string
			ctx := WithNotes(t.Context(), func(format string, args ...any) { told += fmt.Sprintf(format, args...) })
			if _, err := all.Query(ctx, query, nil); err != nil || told != "" {
				t.Errorf("got %v, %q", err, told)
			}
		})
	}
}

// TestParametersHaveTheKindsOfTheirValues checks the kinds of parameters, in errors and in the
// answer.
func TestParametersHaveTheKindsOfTheirValues(t *testing.T) {
	all := openKinds(t)
	for _, c := range []struct{ query, params, want string }{
		{"select count(*) n from sales where day > ?", `[5]`, `such as "2024-01-02"`},
		{"select count(*) n from sales where day > ?", `["2024"]`, `[{"n":2}]`},
		{"select count(*) n from sales where price > ?", `["9"]`, `[{"n":1}]`},
		{"select count(*) n from sales where price > :price", `{"price": "x"}`, "compare with a number"},
		{"select count(*) n from sales where price > $a and id < ?", `{"a": 1}`, "must name its parameters"},
		{"select count(*) n from sales where price * 2 > ?2 and id > ?1", `[0, "9"]`, "give the parameter as a number"},
		{"select count(*) n from sales where price * 2 > ? and id > ?", `[9, 0]`, `[{"n":2}]`},
		{"select count(*) n from sales where :day < day and :day <> name", `{"day": 20240101}`, `such as "2024-01-02"`},
		{"select count(*) n from sales where paid = ?", `[true]`, `[{"n":0}]`},
	} {
		t.Run(c.query+c.params, func(t *testing.T) {
			rows, err := all.Query(t.Context(), c.query, json.RawMessage(c.params))
			if got := fmt.Sprint(string(rows), err); !strings.Contains(got, c.want) {
				t.Errorf("got %s; want %s", got, c.want)
			}
		})
	}
}

// TestAnyTokensEnd checks that invalid queries end, even if they are nested as deeply as their
// length allows.
func TestAnyTokensEnd(t *testing.T) {
	skip.UnderRace(t)
	text := bigtext.FromBytes("t.csv", []byte("a\nx\n"))
	all := New([]Source{{Names: []string{"t"}, Text: text}}, DefaultLimits())
	for _, piece := range []string{
		"(", ")", "case ", "end ", "a > (", "a + ", "in (", "between ", "over (", "x ", "a.", "'", "? ", ",a",
		"case a ",
	} {
		t.Run(piece, func(t *testing.T) {
			if _, err := all.Query(t.Context(), strings.Repeat(piece, maxQuery/4/len(piece)), nil); err == nil {
				t.Error("it is no query")
			}
			_, _ = all.Query(t.Context(), "select a from t where a > "+strings.Repeat(piece, 1000), nil) // any outcome
		})
	}
}
