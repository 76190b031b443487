"""``attnlab study``: does attention pay on a user's own labelled texts, and what does it attend to?

``_study`` has settings, sweeps and the experiment; ``_tables`` what is measured; ``_answers`` the
answers; ``_page`` and ``_words`` what is drawn. ``_best`` compares students and variants;
``_work`` and ``_stopped`` load JAX and are imported when a study runs.
"""

from attnlab.questions.texts._study import TRIED, Study, StudySettings, study_texts

__all__ = ["TRIED", "Study", "StudySettings", "question", "study_texts"]

question = Study()
