"""
Words and precomputed kernels
=============================

Kernels don't need a table of numbers. Here they compare words: by their letters, by pairs and triples of letters, and
by their beginnings and endings. We compute all of them in advance and stack them, and the classifier learns which ones
distinguish four languages. The stack has shape (n_samples, n_samples, n_kernels): the sample axes come first, so
scikit-learn's cross-validation can split it.
"""

# %%
# We use 60 words of each language, without accents.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import GridSearchCV, train_test_split

from paretomkl import ParetoMKLClassifier

WORDS = {
    "English": """
        about after again apple before between bread bridge brother build child church could daughter dream earth
        eight every father flower friend garden great heart heavy house island kitchen knife knight light little
        money morning mother mountain night orange people place river school should sister sleep spring stone street
        summer thought tree under water weather white window world would yellow young
    """,
    "German": """
        abend acht apfel arbeit auge baum berg blume brot bruder dorf durch erde fenster feuer fisch fleisch freund
        frueh garten geld geschichte gestern haus heute himmel kind kirche klein kueche licht liebe mensch milch
        morgen mutter nacht schnee schule schwer schwester sommer sprache stein strasse stunde tochter traum unter
        vater wasser weiss welt wetter wieder wiese wolke zeit zimmer zwischen
    """,
    "Italian": """
        acqua albero amico anche andare anno bambino bello bianco bocca cane casa cavallo chiesa citta cuore domani
        donna dopo estate famiglia figlia finestra fiore fiume fratello fuoco gatto giardino giorno inverno latte
        lavoro lettera libro madre mangiare mare mattina mercato montagna notte nuovo occhio oggi padre parola
        piccolo ponte porta ragazzo sera sole sorella spesso strada terra vecchio vento vino
    """,
    "Finnish": """
        aamu aurinko elokuu huomenna hyva ilta isa jalka joki juusto kahvi kaksi kala kaunis kaupunki kirja kissa
        kivi koira koti koulu kuusi kyla lapsi leipa lintu lumi meri metsa mies minulla mokki mummo nainen nimi
        nuori omena paiva pelto poika puu puutarha ruoka saari sana sininen sisar suuri syksy taivas talo tuli tuoli
        tytto vanha veli vesi vuosi yksi ystava
    """,
}
words = np.array([word for text in WORDS.values() for word in text.split()])
y = np.repeat(list(WORDS), 60)
print(len(words), "words:", *words[10::60])

# %%
# A kernel counts the pieces that two words have in common, k(v, w) = φ(v)'φ(w), where φ holds the counts, and is scaled
# to k(w, w) = 1. The choice of pieces defines the kernel. Pieces of length k give the *spectrum kernel* of Leslie,
# Eskin and Noble (2002); here ``<`` and ``>`` mark the ends of a word. A piece with one letter left open tolerates one
# mismatch.


def pieces(length, mismatch=False):
    """Cut a word into pieces of a given length; with ``mismatch``, leave each letter of a piece open in turn."""

    def cut(word):
        marked = f"<{word}>"
        plain = [marked[i : i + length] for i in range(len(marked) - length + 1)]
        return [piece[:j] + "?" + piece[j + 1 :] for piece in plain for j in range(length)] if mismatch else plain

    return cut


def kernel(cut):
    """Gram matrix of all words for one way to cut them, with unit diagonal."""
    counts = CountVectorizer(analyzer=cut).fit_transform(words)
    K = (counts @ counts.T).toarray().astype(float)
    scale = 1 / np.sqrt(K.diagonal())
    return K * scale[:, None] * scale


kernels = {
    "letters": kernel(list),
    "pairs": kernel(pieces(2)),
    "triples": kernel(pieces(3)),
    "triples, one open": kernel(pieces(3, mismatch=True)),
    "fours, one open": kernel(pieces(4, mismatch=True)),
    "beginning": kernel(lambda word: [word[:k] for k in (1, 2, 3)]),
    "ending": kernel(lambda word: [word[-k:] for k in (1, 2, 3)]),
    "length": kernel(lambda word: [str(len(word))]),
}
stack = np.stack(list(kernels.values()), axis=2)
print("stack of shape", stack.shape)

# %%
# Half of the words are for training. You slice a stack along both of its sample axes: training words against training
# words to fit, and test words against training words to predict. :class:`sklearn.model_selection.GridSearchCV` does
# this itself in every fold, because the estimator declares that its input is pairwise.

train, test = train_test_split(np.arange(len(words)), train_size=0.5, stratify=y, random_state=0)
K_train, K_test = stack[np.ix_(train, train)], stack[np.ix_(test, train)]
grid = {"C": [0.3, 1.0, 3.0, 10.0], "p": [0.1, 1.0, 10.0]}
search = GridSearchCV(ParetoMKLClassifier(kernels="precomputed"), grid, cv=5).fit(K_train, y[train])
clf = search.best_estimator_
print(f"chosen {search.best_params_}, cross-validated accuracy {search.best_score_:.3f}")
print(f"accuracy on {len(test)} new words {search.score(K_test, y[test]):.3f}; guessing gives 0.25")

for name, K in kernels.items():
    alone = GridSearchCV(ParetoMKLClassifier(kernels="precomputed"), {"C": grid["C"]}, cv=5)
    alone.fit(K[np.ix_(train, train)][:, :, None], y[train])
    print(f"  {name + ' alone':23} {alone.score(K[np.ix_(test, train)][:, :, None], y[test]):.3f}")

# %%
# The plots show what the learned kernel is made of, and which languages are confused with each other.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.barh(list(kernels), clf.kernel_shares_)
left.invert_yaxis()
left.set(xlabel="share of the variance of predictions", title="What the kernel is made of")
ConfusionMatrixDisplay.from_predictions(y[test], search.predict(K_test), ax=right, cmap="Blues", colorbar=False)
right.set_title("Single new words")
plt.show()
