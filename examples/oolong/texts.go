package main

// topic is the subject of messages, with the words that distinguish it from the others, and texts
// of such messages, with the blanks {item}, {day}, {city}, {sum}, {name} and {n}.
type topic struct {
	name, meaning string
	texts         []string
}

var topics = []topic{
	{"delivery", "where a parcel is, or when it comes", []string{
		"My {item} should have been here on {day}. Where is it now?",
		"The tracking page has said {city} for {n} days. Has order {n} got lost?",
		"Can the driver leave the {item} with {name} next door?",
		"I paid for the fast option, and the {item} is still not here.",
		"Please send order {n} to {city} instead, we have moved.",
		"On which day can I expect the {item}?",
		"The courier rang at {name}'s door and drove off with my {item}.",
		"Half of order {n} came on {day}. When does the rest arrive?",
	}},
	{"billing", "an amount, an invoice or a payment", []string{
		"You charged {sum} twice for the same {item}.",
		"I need an invoice for order {n} with the address of my office in {city}.",
		"The coupon was not taken off, so the {item} cost {sum} more than it should.",
		"My card statement shows {sum} on {day}, and I ordered nothing that day.",
		"Is it possible to pay for order {n} in three parts?",
		"Why does the receipt name {name} as the payer?",
		"The reminder says that {sum} is open. I paid that on {day}.",
		"Which tax did you put on the {item}? The total of {sum} looks wrong.",
	}},
	{"returns", "sending goods back, or getting money for them", []string{
		"The {item} does not suit me. How do I send it back?",
		"I posted the {item} from {city} on {day}. When do I get my money?",
		"Please exchange the {item} for a larger one.",
		"The label for sending back order {n} cannot be printed.",
		"{name} gave me a {item} that I already have. May I hand it back without the box?",
		"You refunded only a part of order {n}, and I gave everything back.",
		"How many days do I have to change my mind about the {item}?",
		"I would like to cancel order {n} and have the {sum} back.",
	}},
	{"account", "signing in, a password, an address or personal data", []string{
		"I cannot log in since {day}. The page says that {name} is unknown.",
		"How do I change the mail address from {name} to another one?",
		"The code for my new password never arrives.",
		"Please delete all data that you have about {name} in {city}.",
		"Somebody in {city} has logged in as me. What do I do?",
		"My profile shows the birthday of {name}, not mine.",
		"Can two people in {city} share one login?",
		"Take me off the newsletter, I have asked {n} times.",
	}},
	{"praise", "thanks or a compliment, with nothing to be done", []string{
		"The {item} is even nicer than in the picture. Thank you!",
		"Just to say that {name} at your counter in {city} was very kind.",
		"Order {n} came a day early, well done.",
		"Best {item} that I have bought in years, and only {sum}.",
		"You sorted out my invoice so quickly on {day}, I am impressed.",
		"My daughter loves her {item}. Greetings from {city}!",
		"I sent something back for the first time, and it was so easy. Bravo.",
		"Five stars for the {item}, please tell the team.",
	}},
	{"fault", "goods that are broken or do not work", []string{
		"The {item} stopped working after {n} days.",
		"There is a crack in the {item} that I unpacked on {day}.",
		"The {item} makes a loud noise as soon as I switch it on.",
		"A screw is missing, so the {item} from order {n} wobbles.",
		"The battery of the {item} is empty within an hour.",
		"Water runs out of the {item} at the bottom. Can it be repaired?",
		"The {item} smells of smoke. {name} says that it is dangerous.",
		"The colour of the {item} came off on {name}'s hands.",
	}},
}

// words fill in the blanks of texts.
var words = map[string][]string{
	"{item}": {"kettle", "lamp", "rucksack", "toaster", "radio", "umbrella", "drill", "clock", "tent", "blender"},
	"{day}":  {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
	"{city}": {"Lisbon", "Ghent", "Graz", "Turku", "Cork", "Porto", "Bergen", "Trieste"},
	"{sum}":  {"12.50 euros", "39.90 euros", "7 euros", "118 euros", "64.20 euros"},
	"{name}": {"Ines", "Pavel", "Mr Okoye", "Ms Lindqvist", "Tomas", "Aiko", "Dr Reyes"},
	"{n}":    {"2", "3", "4", "5", "6", "8", "12", "20"},
}
