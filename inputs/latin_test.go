package inputs_test

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"github.com/rlmhq/rlm/inputs"
)

// shortTexts contains five short texts in each of twelve encodings with one byte per character.
var shortTexts = []struct {
	name  string
	in    encoding.Encoding
	texts [5]string
}{
	{"latin-1", charmap.ISO8859_1, [5]string{
		"Bjørn købte brød og smør på vej hjem.",
		"Zu spät, das Gebäude wird geschlossen.",
		"Le garçon a mangé une pêche près de la forêt.",
		"Mañana por la mañana vendrá el señor Núñez.",
		"Hún á lítið hús við ströndina og það er gott.",
	}},
	{"cp1252", charmap.Windows1252, [5]string{
		"“Hallå”, sade flickan och gick över bron…",
		"L’œuvre coûte 15 € – pas plus.",
		"Der Müller sagte: „Schöne Grüße an die Bürger!“",
		"A informação não está disponível — tente amanhã.",
		"She didn’t like the café, he said.",
	}},
	{"latin-2", charmap.ISO8859_2, [5]string{
		"Wczoraj kupiłem świeży chleb i żółty ser.",
		"Příliš mnoho lidí čekalo před nádražím.",
		"A gyerekek az erdőben játszottak és gyümölcsöt szedtek.",
		"Ľudia na námestí čakali, kým príde vlak.",
		"Rano je šel čez cesto k sosedu.",
	}},
	{"cp1250", charmap.Windows1250, [5]string{
		"Świąteczny obiad był pyszny, dziękuję.",
		"Štěstí přeje připraveným, říká děda.",
		"Az őszi eső elmosta az utat, ezért késünk.",
		"Ďakujem, že ste prišli – teší ma to.",
		"Žena i čovjek šetaju uz more, ali šute.",
	}},
	{"cp865", charmap.CodePage865, [5]string{
		"Vi spiser blåbær og fløte på hytta.",
		"Så går vi ned til sjøen, sa Åse.",
		"Året går, og vi lærer så mye nytt.",
		"Køb to æbler og én pære på torvet.",
		"Lagret på Øya er tomt før påske.",
	}},
	{"cp850", charmap.CodePage850, [5]string{
		"Die Schüler hören Musik und essen Äpfel.",
		"Fjällräven är stängd på söndag, tyvärr.",
		"Où est la clé de l'hôtel ? Elle a été oubliée là.",
		"El niño está aquí, pero el león no.",
		"Amanhã não há pão, diz o João.",
	}},
	{"cp852", charmap.CodePage852, [5]string{
		"Proszę zamknąć drzwi, bo wieje z północy.",
		"Včera jsme viděli tři malé kočky.",
		"A szép könyv az asztalon van, és új.",
		"Mám rád čerstvý chlieb a mäkký syr.",
		"Łódka płynie przez jezioro, a słońce świeci.",
	}},
	{"iso-8859-15", charmap.ISO8859_15, [5]string{
		"Das Buch kostet 20 € und ist schön.",
		"Le cœur de la ville bat près du marché à 5 €.",
		"Hän söi päärynän ja maksoi 3 € torilla.",
		"Le prix était de 12 €, l'été dernier.",
		"La niña pagó 7 € por el café y el té.",
	}},
	{"iso-8859-13", charmap.ISO8859_13, [5]string{
		"Šiandien labai šilta, todėl einame į mišką.",
		"Vēsturnieks lasa grāmatu par senajām pilīm.",
		"Mūsų kaimynai žiūri į žvaigždes ir tyli.",
		"Rīgā šodien līst lietus, bet rīt būs saule.",
		"Jis nežino, kur yra mano raktų dėžutė.",
	}},
	{"cp1257", charmap.Windows1257, [5]string{
		"Ačiū už pagalbą, jūs labai geri žmonės.",
		"Bērni spēlējas pagalmā, un māte gatavo ēst.",
		"„Labas rytas“, tarė mokytoja ir nusišypsojo.",
		"Ķēniņš dzīvoja pilī kopā ar savu ģimeni.",
		"Vakar vakare žvejai sugavo daug žuvų.",
	}},
	{"cp1254", charmap.Windows1254, [5]string{
		"Çocuklar bahçede oynuyor ve şarkı söylüyor.",
		"Yarın İstanbul'a gideceğiz, çok güzel olacak.",
		"Kışın dağlarda kar yağıyor, yollar kapalı.",
		"Bu kitabı dün akşam okudum ve beğendim.",
		"Öğretmen sınıfa girdi, öğrenciler ayağa kalktı.",
	}},
	{"mac-roman", charmap.Macintosh, [5]string{
		"Die Gäste fühlen sich wohl und möchten länger bleiben.",
		"Les élèves ont déjà fini leur leçon de français.",
		"“Où êtes-vous ?” demanda-t-il à la dame âgée.",
		"Sommaren är kort men det är vackert på ön.",
		"¿Dónde está el baño? – preguntó el señor.",
	}},
}

func TestSignsAreNotTakenForLetters(t *testing.T) {
	for _, text := range []string{
		"Price £5", "It costs £ 5.", "5 ± 2 mm", "25 °C", "25°C", "½ cup of milk", "10 µm", "À 5 heures",
		"§ 3", "© 2024 Example Ltd", "2 × 3", "x² + y³", "id;name\n1;Zoë\n", "one café",
	} {
		t.Run(text, func(t *testing.T) {
			data, err := charmap.Windows1252.NewEncoder().Bytes([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			in, err := read(t, inputs.Options{}, "x", data)
			if err != nil {
				t.Fatal(err)
			}
			if got := contentOf(t, in.Text); got != text {
				t.Errorf("it is %q, %q", got, in.Notes)
			}
		})
	}
}

// TestShortTextsAreDecoded decodes texts that were not used to choose the scores. With the note,
// the reader of a wrongly decoded text can name the encoding.
func TestShortTextsAreDecoded(t *testing.T) {
	right, all := 0, 0
	for _, row := range shortTexts {
		for _, text := range row.texts {
			data, err := row.in.NewEncoder().Bytes([]byte(text))
			if err != nil {
				t.Fatalf("%s cannot have %q: %v", row.name, text, err)
			}
			in, err := read(t, inputs.Options{}, "x", data)
			if err != nil {
				t.Fatal(err)
			}
			all++
			if got := contentOf(t, in.Text); got == text {
				right++
			} else {
				t.Logf("%s: %q is %q", row.name, text, got)
			}
			notes := strings.Join(in.Notes, "; ")
			if !strings.Contains(notes, "a guess") || !strings.Contains(notes, "--encoding") {
				t.Errorf("the notes on %q are %q", text, notes)
			}
		}
	}
	if right < 57 || all != 60 {
		t.Errorf("%d of %d are right, want 57 of 60", right, all)
	}
}

func TestALongTextIsDecodedLikeAShortOne(t *testing.T) {
	text := strings.Repeat("Wczoraj kupiłem świeży chleb i żółty ser.\n", 20_000)
	data, err := charmap.CodePage852.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	in, err := read(t, inputs.Options{}, "x", data)
	if err != nil || contentOf(t, in.Text) != text {
		t.Errorf("it is decoded wrongly (%v), %q", err, in.Notes)
	}
}

// TestTheLettersOfALongLineAreSeen decodes a text that is one line, whose first letter that is not
// ASCII comes late.
func TestTheLettersOfALongLineAreSeen(t *testing.T) {
	text := `{"id": [` + strings.Repeat("1, ", 5_000) +
		`0], "text": "Wczoraj kupiłem świeży chleb i żółty ser, był bardzo smaczny."}`
	data, err := charmap.Windows1250.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	in, err := read(t, inputs.Options{}, "x", data)
	if err != nil || contentOf(t, in.Text) != text {
		t.Errorf("it is decoded wrongly (%v), %q", err, in.Notes)
	}
}
