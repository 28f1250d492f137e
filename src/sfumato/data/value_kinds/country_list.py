"""Countries by region: two letters, three letters, name, and other names in use.

Codes are those of ISO 3166-1, regions those of the United Nations (Standard country or area codes for statistical use, series M,
no. 49). Taiwan, which M49 does not list, stands with its neighbours. Names are short ones in common use, ours where those differ.
"""

REGIONS = """
Africa: Northern Africa
DZ DZA Algeria
EG EGY Egypt
LY LBY Libya
MA MAR Morocco
SD SDN Sudan
TN TUN Tunisia
EH ESH Western Sahara
Africa: Eastern Africa
IO IOT British Indian Ocean Territory
BI BDI Burundi
KM COM Comoros
DJ DJI Djibouti
ER ERI Eritrea
ET ETH Ethiopia
TF ATF French Southern Territories
KE KEN Kenya
MG MDG Madagascar
MW MWI Malawi
MU MUS Mauritius
YT MYT Mayotte
MZ MOZ Mozambique
RE REU Réunion
RW RWA Rwanda
SC SYC Seychelles
SO SOM Somalia
SS SSD South Sudan
UG UGA Uganda
TZ TZA Tanzania | United Republic of Tanzania
ZM ZMB Zambia
ZW ZWE Zimbabwe
Africa: Middle Africa
AO AGO Angola
CM CMR Cameroon
CF CAF Central African Republic
TD TCD Chad
CG COG Congo | Republic of the Congo | Congo Brazzaville
CD COD Democratic Republic of the Congo | DR Congo | Congo Kinshasa | Zaire
GQ GNQ Equatorial Guinea
GA GAB Gabon
ST STP São Tomé and Príncipe
Africa: Southern Africa
BW BWA Botswana
SZ SWZ Eswatini | Swaziland
LS LSO Lesotho
NA NAM Namibia
ZA ZAF South Africa
Africa: Western Africa
BJ BEN Benin
BF BFA Burkina Faso
CV CPV Cabo Verde | Cape Verde
CI CIV Côte d'Ivoire | Ivory Coast
GM GMB Gambia | The Gambia
GH GHA Ghana
GN GIN Guinea
GW GNB Guinea-Bissau
LR LBR Liberia
ML MLI Mali
MR MRT Mauritania
NE NER Niger
NG NGA Nigeria
SH SHN Saint Helena | Saint Helena, Ascension and Tristan da Cunha
SN SEN Senegal
SL SLE Sierra Leone
TG TGO Togo
Americas: Caribbean
AI AIA Anguilla
AG ATG Antigua and Barbuda
AW ABW Aruba
BS BHS Bahamas | The Bahamas
BB BRB Barbados
BQ BES Bonaire, Sint Eustatius and Saba | Caribbean Netherlands
VG VGB British Virgin Islands
KY CYM Cayman Islands
CU CUB Cuba
CW CUW Curaçao
DM DMA Dominica
DO DOM Dominican Republic
GD GRD Grenada
GP GLP Guadeloupe
HT HTI Haiti
JM JAM Jamaica
MQ MTQ Martinique
MS MSR Montserrat
PR PRI Puerto Rico
BL BLM Saint Barthélemy
KN KNA Saint Kitts and Nevis
LC LCA Saint Lucia
MF MAF Saint Martin
VC VCT Saint Vincent and the Grenadines
SX SXM Sint Maarten
TT TTO Trinidad and Tobago
TC TCA Turks and Caicos Islands
VI VIR United States Virgin Islands | US Virgin Islands
Americas: Central America
BZ BLZ Belize
CR CRI Costa Rica
SV SLV El Salvador
GT GTM Guatemala
HN HND Honduras
MX MEX Mexico
NI NIC Nicaragua
PA PAN Panama
Americas: South America
AR ARG Argentina
BO BOL Bolivia | Plurinational State of Bolivia
BV BVT Bouvet Island
BR BRA Brazil
CL CHL Chile
CO COL Colombia
EC ECU Ecuador
FK FLK Falkland Islands | Malvinas
GF GUF French Guiana
GY GUY Guyana
PY PRY Paraguay
PE PER Peru
GS SGS South Georgia and the South Sandwich Islands
SR SUR Suriname
UY URY Uruguay
VE VEN Venezuela | Bolivarian Republic of Venezuela
Americas: Northern America
BM BMU Bermuda
CA CAN Canada
GL GRL Greenland
PM SPM Saint Pierre and Miquelon
US USA United States | United States of America | U.S.A. | U.S.
Antarctica: Antarctica
AQ ATA Antarctica
Asia: Central Asia
KZ KAZ Kazakhstan
KG KGZ Kyrgyzstan
TJ TJK Tajikistan
TM TKM Turkmenistan
UZ UZB Uzbekistan
Asia: Eastern Asia
CN CHN China | People's Republic of China
HK HKG Hong Kong
MO MAC Macao | Macau
KP PRK North Korea | Democratic People's Republic of Korea
JP JPN Japan
MN MNG Mongolia
KR KOR South Korea | Republic of Korea
TW TWN Taiwan
Asia: South-eastern Asia
BN BRN Brunei | Brunei Darussalam
KH KHM Cambodia
ID IDN Indonesia
LA LAO Laos | Lao People's Democratic Republic
MY MYS Malaysia
MM MMR Myanmar | Burma
PH PHL Philippines | The Philippines
SG SGP Singapore
TH THA Thailand
TL TLS Timor-Leste | East Timor
VN VNM Vietnam | Viet Nam
Asia: Southern Asia
AF AFG Afghanistan
BD BGD Bangladesh
BT BTN Bhutan
IN IND India
IR IRN Iran | Islamic Republic of Iran
MV MDV Maldives
NP NPL Nepal
PK PAK Pakistan
LK LKA Sri Lanka
Asia: Western Asia
AM ARM Armenia
AZ AZE Azerbaijan
BH BHR Bahrain
CY CYP Cyprus
GE GEO Georgia
IQ IRQ Iraq
IL ISR Israel
JO JOR Jordan
KW KWT Kuwait
LB LBN Lebanon
OM OMN Oman
QA QAT Qatar
SA SAU Saudi Arabia
PS PSE Palestine | State of Palestine
SY SYR Syria | Syrian Arab Republic
TR TUR Türkiye | Turkey
AE ARE United Arab Emirates | UAE
YE YEM Yemen
Europe: Eastern Europe
BY BLR Belarus
BG BGR Bulgaria
CZ CZE Czechia | Czech Republic
HU HUN Hungary
PL POL Poland
MD MDA Moldova | Republic of Moldova
RO ROU Romania
RU RUS Russia | Russian Federation
SK SVK Slovakia
UA UKR Ukraine
Europe: Northern Europe
AX ALA Åland Islands | Åland
DK DNK Denmark
EE EST Estonia
FO FRO Faroe Islands
FI FIN Finland
GG GGY Guernsey
IS ISL Iceland
IE IRL Ireland
IM IMN Isle of Man
JE JEY Jersey
LV LVA Latvia
LT LTU Lithuania
NO NOR Norway
SJ SJM Svalbard and Jan Mayen
SE SWE Sweden
GB GBR United Kingdom | Great Britain | U.K. | England | Scotland | Wales | Northern Ireland
Europe: Southern Europe
AL ALB Albania
AD AND Andorra
BA BIH Bosnia and Herzegovina
HR HRV Croatia
GI GIB Gibraltar
GR GRC Greece
VA VAT Holy See | Vatican | Vatican City
IT ITA Italy
MT MLT Malta
ME MNE Montenegro
MK MKD North Macedonia | Macedonia
PT PRT Portugal
SM SMR San Marino
RS SRB Serbia
SI SVN Slovenia
ES ESP Spain
Europe: Western Europe
AT AUT Austria
BE BEL Belgium
FR FRA France
DE DEU Germany
LI LIE Liechtenstein
LU LUX Luxembourg
MC MCO Monaco
NL NLD Netherlands | The Netherlands | Holland
CH CHE Switzerland
Oceania: Australia and New Zealand
AU AUS Australia
CX CXR Christmas Island
CC CCK Cocos (Keeling) Islands | Cocos Islands
HM HMD Heard Island and McDonald Islands
NZ NZL New Zealand
NF NFK Norfolk Island
Oceania: Melanesia
FJ FJI Fiji
NC NCL New Caledonia
PG PNG Papua New Guinea
SB SLB Solomon Islands
VU VUT Vanuatu
Oceania: Micronesia
GU GUM Guam
KI KIR Kiribati
MH MHL Marshall Islands
FM FSM Federated States of Micronesia
NR NRU Nauru
MP MNP Northern Mariana Islands
PW PLW Palau
UM UMI United States Minor Outlying Islands
Oceania: Polynesia
AS ASM American Samoa
CK COK Cook Islands
PF PYF French Polynesia
NU NIU Niue
PN PCN Pitcairn
WS WSM Samoa
TK TKL Tokelau
TO TON Tonga
TV TUV Tuvalu
WF WLF Wallis and Futuna
"""
